use proptest::prelude::*;

use super::*;

const TABLE: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
99 22 7:1 / /var/lib/kubelet/globalmount rw,relatime shared:5 master:3 - ext4 /dev/loop1 rw\n\
100 22 7:1 / /var/lib/kubelet/pods/a\\040b/mount ro,relatime - ext4 /dev/loop1 rw\n\
101 22 0:6 /loop2 /var/lib/kubelet/publish/x rw - devtmpfs devtmpfs rw,size=4k\n\
102 99 7:9 / /var/lib/kubelet/globalmount rw - xfs /dev/loop9 rw\n";

fn table() -> Table {
    Table::parse(TABLE.as_bytes()).unwrap()
}

#[test]
fn fields_are_read_with_escapes_and_optional_ones() {
    let table = table();
    let mount = table.at(Path::new("/var/lib/kubelet/pods/a b/mount")).unwrap();
    assert_eq!((mount.device, mount.read_only), ((7, 1), true));
    let block = table.at(Path::new("/var/lib/kubelet/publish/x")).unwrap();
    assert_eq!((block.root.as_path(), block.read_only), (Path::new("/loop2"), false));
    assert_eq!(table.at(Path::new("/var/lib/kubelet")), None);
}

#[test]
fn what_is_mounted_last_is_what_is_seen() {
    let table = table();
    let seen = table.at(Path::new("/var/lib/kubelet/globalmount")).unwrap();
    assert_eq!((seen.device, seen.file_system.as_str()), ((7, 9), "xfs"));
}

#[test]
fn other_mounts_of_the_same_are_found() {
    let table = table();
    let mount = table.at(Path::new("/var/lib/kubelet/pods/a b/mount")).unwrap();
    let others: Vec<&Path> = table.others(mount).map(|mount| mount.point.as_path()).collect();
    assert_eq!(others, [Path::new("/var/lib/kubelet/globalmount")]);
}

#[test]
fn escapes_that_are_none_stay_as_they_are() {
    for (written, read) in [
        ("/a\\134b", "/a\\b"),
        ("/a\\011b\\012", "/a\tb\n"),
        ("/a\\", "/a\\"),
        ("/a\\04", "/a\\04"),
        ("/a\\+40", "/a\\+40"),
        ("/a\\999", "/a\\999"),
        ("/a\\777", "/a\\777"),
    ] {
        assert_eq!(unescape(written.as_bytes()), Path::new(read), "{written}");
    }
}

#[test]
fn line_that_is_not_understood_is_an_error() {
    for line in [
        "x",
        "1 2 3 / / rw - ext4 a rw",
        "1 2 3:4 / / rw ext4 a rw",
        "1 2 3:-4 / / rw - a",
    ] {
        let error = Table::parse(line.as_bytes()).unwrap_err();
        assert!(matches!(error, TableError::Line(1)), "{line}: {error}");
    }
}

#[test]
fn table_of_this_machine_is_read() {
    assert!(Table::read().unwrap().at(Path::new("/proc")).is_some());
}

proptest! {
    #[test]
    fn no_bytes_are_too_odd(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Table::parse(&bytes);
        unescape(&bytes);
    }
}
