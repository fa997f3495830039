use super::*;

#[test]
fn kept_and_done_once() {
    let mine = Action { handler: 0x1000, flags: libc::SA_RESETHAND as u32 as u64, restorer: 0, mask: 7 };
    let before = set(mine);
    assert_eq!(get(), mine);
    assert_eq!(take(), mine);
    assert_eq!(get().handler, libc::SIG_DFL);
    let own = Action { flags: 0, ..mine };
    set(own);
    assert_eq!((take(), take()), (own, own));
    set(before);
}
