//! Files of resolvers as they are found on machines, and worse ones.

use super::*;

#[test]
fn file_of_a_machine_is_read_and_written() {
    let text = "# made by NetworkManager\n; and others\ndomain a.example.com\nsearch c.project.internal google.internal.\n\
                nameserver 169.254.169.254\n nameserver fe80::1%eth0 # trailing\nsortlist 10.0.0.0\noptions edns0 trust-ad\noptions ndots:2 edns0\n";
    let file = ResolverFile::read(text);
    assert_eq!(file.resolver.nameservers, ["169.254.169.254", "fe80::1%eth0"]);
    assert_eq!(file.resolver.searches, ["c.project.internal", "google.internal."]);
    assert_eq!(file.left_out, Vec::<String>::new());
    assert_eq!(
        file.to_string(),
        "nameserver 169.254.169.254\nnameserver fe80::1%eth0\nsearch c.project.internal google.internal.\noptions edns0 trust-ad ndots:2\n"
    );
    assert_eq!(ResolverFile::read(&file.to_string()), file);
}

#[test]
fn last_of_domain_and_search_counts() {
    assert_eq!(ResolverFile::read("search a b\ndomain c d").resolver.searches, ["c"]);
    assert_eq!(ResolverFile::read("domain c\nsearch a b").resolver.searches, ["a", "b"]);
    assert!(ResolverFile::read("search a\nsearch").resolver.searches.is_empty());
}

#[test]
fn invalid_and_excess_entries_are_dropped_and_reported() {
    let servers: String = (0..MAX_NAMESERVERS + 2)
        .map(|n| format!("nameserver 10.0.0.{n}\n"))
        .collect();
    let searches: Vec<String> = (0..MAX_SEARCHES + 3).map(|n| format!("s{n}.example")).collect();
    let text = format!(
        "{servers}nameserver dns.example\nnameserver\nsearch {} a;b\noptions $(reboot)\n",
        searches.join(" ")
    );
    let file = ResolverFile::read(&text);
    assert_eq!(file.resolver.nameservers.len(), MAX_NAMESERVERS);
    assert_eq!(file.resolver.searches.len(), MAX_SEARCHES);
    assert!(file.options.is_empty());
    assert_eq!(file.left_out.len(), 2 + 2 + 3 + 1 + 1);
    assert_eq!(file.unused().len(), 1);
}

#[test]
fn stub_of_systemd_is_known() {
    assert!(ResolverFile::read("nameserver 127.0.0.53\n").is_loopback());
    assert!(!ResolverFile::read("nameserver 127.0.0.53\nnameserver 10.0.0.2\n").is_loopback());
    assert!(!ResolverFile::read("").is_loopback());
}
