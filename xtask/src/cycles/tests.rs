use super::*;

fn problems(files: &[(&str, &str)]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        paths.push(path);
    }
    let mut problems = Vec::new();
    check("made-up", dir.path(), &paths, &mut problems);
    problems
}

#[test]
fn a_circle_is_named() {
    let circle = problems(&[
        ("a.rs", "use crate::{d::X, b::{self, Y}};"),
        ("b/mod.rs", "use super::c::Z;"),
        ("c.rs", "fn f() { crate::a::g() }"),
        ("d.rs", ""),
    ]);
    assert_eq!(circle, ["crates/made-up: 3 files import each other in circles: a, b, c"]);
}

#[test]
fn a_circle_of_siblings_is_one_though_their_parent_is_in_it() {
    let circle = problems(&[
        ("a/mod.rs", "mod b; mod c; pub use b::X; fn f() { c::g() }"),
        ("a/b.rs", "use super::c::Y; use super::Z;"),
        ("a/c.rs", "use super::b::X;"),
    ]);
    assert_eq!(circle, ["crates/made-up: 2 files import each other in circles: a::b, a::c"]);
}

#[test]
fn a_circle_through_a_parent_and_its_child_is_one() {
    let circle = problems(&[
        ("a/mod.rs", "mod b; fn f() { b::g() }"),
        ("a/b.rs", "use crate::c::h;"),
        ("c.rs", "use crate::a;"),
    ]);
    assert_eq!(circle, ["crates/made-up: 3 files import each other in circles: a, a::b, c"]);
}

#[test]
fn parents_and_children_may_know_each_other_and_comments_and_tests_import_nothing() {
    let fine = problems(&[
        ("lib.rs", "pub use a::b::X; use crate::a;"),
        ("a/mod.rs", "use crate::a::b::X;"),
        ("a/b.rs", "use super::Y; use crate::c; // crate::d::E"),
        ("c.rs", "/// [`crate::a::b`]\n#[cfg(test)]\nmod tests { use crate::a::b; }"),
        ("d.rs", "use crate::a;"),
    ]);
    assert_eq!(fine, Vec::<String>::new());
}
