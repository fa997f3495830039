use super::*;

#[test]
fn jumps_of_the_boot_sector_land_where_they_should() {
    let sector = boot_sector(Some(7));
    let jump = |at: usize| (at as i64 + 2 + i64::from(sector[at + 1] as i8)) as usize;
    assert_eq!((sector[14], jump(14)), (0xe2, 14), "loop to itself");
    assert_eq!((sector[18], sector[jump(18)]), (0x75, 0xb9), "to mov cx");
    assert_eq!((sector[21], jump(21), sector[jump(21)]), (0xeb, 5, 0x66), "to mov edx");
    assert_eq!(boot_sector(None)[5..7], [0xeb, 0xfe]);
    assert_eq!(sector[510..], [0x55, 0xaa]);
}
