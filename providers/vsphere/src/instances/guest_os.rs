//! Short names of operating systems, for instance types: upstream's table (`types.go`, `GuestOSLookup`).
//!
//! A Node's label must not change when the Node moves from the upstream controller to this one, so what upstream does not have is `unknown`
//! here too, however good a name the id would make.

/// A short name, and its ids, with `*` for `Guest`.
const TABLE: &str = "\
asianux3: asianux3_64* asianux3*
asianux4: asianux4_64* asianux4*
asianux5: asianux5_64*
asianux7: asianux7_64*
centos6: centos6_64* centos6*
centos64: centos64*
centos7: centos7_64* centos7*
centos: centos*
coreos: coreos64*
darwin: darwin10_64* darwin10* darwin11_64* darwin11* darwin12_64* darwin13_64* darwin14_64* darwin15_64* darwin16_64* darwin64* darwin*
debian10: debian10_64* debian10*
debian4: debian4_64* debian4*
debian5: debian5_64* debian5*
debian6: debian6_64* debian6*
debian7: debian7_64* debian7*
debian8: debian8_64* debian8*
debian9: debian9_64* debian9*
dos: dos*
eComStation2: eComStation2*
eComStation: eComStation*
fedora: fedora64* fedora*
freebsd: freebsd64* freebsd*
linux: genericLinux* other24xLinux64* other24xLinux* other26xLinux64* other26xLinux* other3xLinux64* other3xLinux* otherLinux64* otherLinux*
mandrake: mandrake*
mandriva: mandriva64* mandriva*
netware4: netware4*
netware5: netware5*
netware6: netware6*
nld9: nld9*
oes: oes*
openServer5: openServer5*
openServer6: openServer6*
opensuse: opensuse64* opensuse*
oracleLinux6: oracleLinux6_64* oracleLinux6*
oracleLinux: oracleLinux64* oracleLinux*
oracleLinux7: oracleLinux7_64* oracleLinux7*
os2: os2*
other: other* other*64
rhel: redhat*
rhel2: rhel2*
rhel3: rhel3_64* rhel3*
rhel4: rhel4_64* rhel4*
rhel5: rhel5_64* rhel5*
rhel6: rhel6_64* rhel6*
rhel7: rhel7_64* rhel7*
rhel8: rhel8_64*
rhel9: rhel9_64*
rhel10: rhel10_64*
sjds: sjds*
sles10: sles10_64* sles10*
sles11: sles11_64* sles11*
sles12: sles12_64* sles12*
sles64: sles64*
sles: sles*
solaris10: solaris10_64* solaris10*
solaris11: solaris11_64*
solaris6: solaris6*
solaris7: solaris7*
solaris8: solaris8*
solaris9: solaris9*
suse: suse64* suse*
turbolinux: turboLinux64* turboLinux*
ubuntu: ubuntu64* ubuntu*
unixware7: unixWare7*
vmkernel5: vmkernel5*
vmkernel65: vmkernel65*
vmkernel6: vmkernel6*
vmkernel: vmkernel*
photon: vmwarePhoton64*
win2000advserv: win2000AdvServ*
win2000pro: win2000Pro*
win2000serv: win2000Serv*
win31: win31*
win95: win95*
win98: win98*
win7: windows7_64* windows7*
win7server: windows7Server64*
win8: windows8_64* windows8*
win8server: windows8Server64*
win10: windows9_64* windows9*
win10server: windows9Server64*
windowshyperv: windowsHyperV*
winlonghorn: winLonghorn64* winLonghorn*
winme: winMe*
winnetbusiness: winNetBusiness*
winnetdatacenter: winNetDatacenter64* winNetDatacenter*
winnetenterprise: winNetEnterprise64* winNetEnterprise*
winnetstandard: winNetStandard64* winNetStandard*
winnetweb: winNetWeb*
winnt: winNT*
winvista: winVista64* winVista*
winxphome: winXPHome*
winxppro: winXPPro64* winXPPro*";

/// The name of everything else.
const UNKNOWN: &str = "unknown";

/// The short name for a `guestId`.
pub fn short_name(guest_id: &str) -> &'static str {
    let short = match guest_id.split_once("Guest") {
        Some((start, end)) => format!("{start}*{end}"),
        None => guest_id.into(),
    };
    let of = |line: &'static str| {
        let (name, ids) = line.split_once(": ")?;
        ids.split(' ').any(|id| id == short).then_some(name)
    };
    TABLE.lines().find_map(of).unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_upstreams_and_what_it_does_not_know_is_unknown() {
        for (id, name) in [
            ("ubuntu64Guest", "ubuntu"),
            ("rhel9_64Guest", "rhel9"),
            ("redhatGuest", "rhel"),
            ("otherGuest64", "other"),
            ("otherGuest", "other"),
            ("other3xLinux64Guest", "linux"),
            ("vmwarePhoton64Guest", "photon"),
            ("windows9Server64Guest", "win10server"),
            ("debian11_64Guest", "unknown"),
            ("", "unknown"),
            ("*", "unknown"),
        ] {
            assert_eq!(short_name(id), name, "{id}");
        }
    }
}
