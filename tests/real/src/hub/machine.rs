//! The first process of a machine: mounts of its own, then containerd, kubelet, kube-proxy and the node service of volumes, until standard input closes.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, stdin};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cloudwit_test_support::scenes::deployment::CLUSTER_CIDR;
use rustix::process::{WaitOptions, wait};

use crate::outside::control_groups::hierarchies;
use crate::process::{call, own_namespaces, with_parts};
use crate::volumes::{DRIVER, SYSFS};

/// What kubelet sets in the kernel. It finds these values in files of its own, so that the machine's stay as they are.
const SYSCTLS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

/// How long containerd may take to serve.
const CONTAINERD: Duration = Duration::from_secs(60);

/// How often it is asked.
const PAUSE: Duration = Duration::from_millis(100);

/// Those that are started again.
const KUBELET: &str = "kubelet";

/// See [`KUBELET`].
const CSI_NODE: &str = "csi-node";

/// Where kubelet looks for drivers of volumes.
const PLUGINS: &str = "/var/lib/kubelet/plugins_registry";

/// Where `cloudwit csi-node` finds programs first.
const PROGRAMS: &str = "/usr/local/sbin";

/// The programs for file systems that it runs, which a machine need not have.
const FILE_SYSTEM_TOOLS: [&str; 5] = ["e2fsck", "mkfs.ext4", "mkfs.xfs", "resize2fs", "xfs_growfs"];

/// How often a kubelet or a driver that has ended is started again.
const RESTARTS: u32 = 5;

/// What a machine is told.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The name of the machine and of its Node.
    #[arg(long)]
    pub name: String,
    /// Its address, which kubelet is told.
    #[arg(long)]
    pub address: String,
    /// Its folder, with all files.
    #[arg(long)]
    pub folder: PathBuf,
    /// The unpacked parts of a Node.
    #[arg(long)]
    pub parts: PathBuf,
    /// The program of `tests/kubernetes`.
    #[arg(long)]
    pub kubernetes: PathBuf,
    /// The program of Cloudwit, to run its node service of volumes.
    #[arg(long)]
    pub cloudwit: Option<PathBuf>,
    /// An image for containerd, as a tar archive.
    #[arg(long)]
    pub image: Vec<PathBuf>,
    /// One that is needed later than kubelet.
    #[arg(long)]
    pub later_image: Vec<PathBuf>,
}

/// Runs until standard input closes or one of the programs ends.
pub fn run(options: &Options) -> Result<()> {
    mounts(options)?;
    // A line says that the network is there; the end of the input, that whoever started us is gone.
    let mut line = String::new();
    if stdin().read_line(&mut line).context("waiting for the network")? == 0 {
        return Ok(());
    }
    std::thread::spawn(|| {
        for _ in stdin().lock().lines().map_while(|line| line.ok()) {}
        // The first process of these namespaces ends, and with it all others.
        std::process::exit(0);
    });
    let mut programs = vec![("containerd", containerd(options)?)];
    for image in &options.image {
        import(options, image)?;
    }
    programs.push((KUBELET, kubelet(options)?));
    programs.push(("kube-proxy", proxy(options)?));
    if let Some(cloudwit) = &options.cloudwit {
        programs.push((CSI_NODE, csi_node(options, cloudwit)?));
    }
    for image in &options.later_image {
        import(options, image)?;
    }
    let mut restarts = 0;
    // Whatever has lost its parent becomes our child, so it is waited for too.
    while let Some((pid, status)) = wait(WaitOptions::empty()).context("waiting for processes")? {
        let ended = u32::try_from(pid.as_raw_nonzero().get()).unwrap_or_default();
        let Some((name, child)) = programs.iter_mut().find(|(_, child)| child.id() == ended) else {
            continue;
        };
        // As the service manager of a machine does.
        let started = match (*name, &options.cloudwit) {
            _ if restarts == RESTARTS => None,
            (KUBELET, _) => Some(kubelet(options)?),
            (CSI_NODE, Some(cloudwit)) => Some(csi_node(options, cloudwit)?),
            _ => None,
        };
        let Some(started) = started else {
            bail!(
                "{name} has ended by itself ({status:?}); see {}",
                options.folder.display()
            );
        };
        restarts += 1;
        *child = started;
    }
    Ok(())
}

/// Everything that would be written outside of the machine's folder gets a mount. All of them end with us.
fn mounts(options: &Options) -> Result<()> {
    let folder = options.folder.display();
    own_namespaces()?;
    call(&format!("hostname {}", options.name))?;
    call("mount -t proc proc /proc")?;
    control_groups()?;
    for dir in ["/run", "/var/lib"] {
        call(&format!("mount -t tmpfs -o mode=755 tmpfs {dir}"))?;
    }
    for (own, place) in [
        ("kubelet", "/var/lib/kubelet"),
        ("containerd", "/var/lib/containerd"),
        ("log", "/var/log"),
    ] {
        fs::create_dir_all(options.folder.join(own)).with_context(|| format!("making the folder {own}"))?;
        fs::create_dir_all(place).with_context(|| format!("making {place}"))?;
        call(&format!("mount --bind {folder}/{own} {place}"))?;
    }
    for place in ["/run/containerd", "/run/lock", "/run/cni/net.d", "/var/lib/cni"] {
        fs::create_dir_all(place).with_context(|| format!("making {place}"))?;
    }
    let sysctls = options.folder.join("sysctl");
    fs::create_dir_all(&sysctls).context("making the folder of settings")?;
    for (setting, value) in SYSCTLS {
        let file = sysctls.join(setting.replace('/', "."));
        fs::write(&file, value).with_context(|| format!("writing {}", file.display()))?;
        call(&format!("mount --bind {} /proc/sys/{setting}", file.display()))?;
    }
    if options.cloudwit.is_some() {
        file_system_tools(options)?;
    }
    call("mount --make-rshared /")?;
    call("ip link set lo up")
}

/// Puts the unpacked programs for file systems where `cloudwit csi-node` finds them. It passes no environment on, so scripts say where their libraries are.
fn file_system_tools(options: &Options) -> Result<()> {
    let folder = options.folder.join("programs");
    fs::create_dir_all(&folder).context("making the folder of programs")?;
    fs::create_dir_all(PROGRAMS).with_context(|| format!("making {PROGRAMS}"))?;
    let parts = options.parts.display();
    for name in FILE_SYSTEM_TOOLS {
        let places = ["sbin", "usr/sbin"].map(|place| options.parts.join(place).join(name));
        let Some(program) = places.iter().find(|place| place.exists()) else {
            bail!("{name} is not among the parts of a Node in {parts}");
        };
        let script = format!(
            "#!/bin/sh\nLD_LIBRARY_PATH={parts}/usr/lib/x86_64-linux-gnu:{parts}/lib/x86_64-linux-gnu exec {} \"$@\"\n",
            program.display()
        );
        let file = folder.join(name);
        fs::write(&file, script).with_context(|| format!("writing {}", file.display()))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).with_context(|| format!("{}", file.display()))?;
    }
    call(&format!("mount --bind {} {PROGRAMS}", folder.display()))
}

/// Mounts the control groups once more: in our namespace of them their root is our own group, so that kubelet and runc find no other.
fn control_groups() -> Result<()> {
    let all = hierarchies()?;
    call("umount --recursive /sys/fs/cgroup")?;
    call("mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup")?;
    for one in all {
        let place = one.mount.display();
        fs::create_dir_all(&one.mount).with_context(|| format!("making {place}"))?;
        match one.controllers.as_str() {
            "" => call(&format!("mount -t cgroup2 cgroup2 {place}"))?,
            named if named.starts_with("name=") => call(&format!("mount -t cgroup -o none,{named} cgroup {place}"))?,
            controllers => {
                call(&format!("mount -t cgroup -o {controllers} cgroup {place}"))?;
                // Two controllers in one hierarchy are also looked for under their own names.
                for name in controllers.split(',').filter(|_| controllers.contains(',')) {
                    let link = Path::new("/sys/fs/cgroup").join(name);
                    symlink(&one.mount, &link).with_context(|| format!("making {}", link.display()))?;
                }
            }
        }
    }
    Ok(())
}

fn containerd(options: &Options) -> Result<Child> {
    let program = options.parts.join("usr/bin/containerd");
    start(options, "containerd", &program, |command| {
        command.arg("--config").arg(options.folder.join("containerd.toml"));
    })
}

/// Gives containerd an image that Pods run, once it serves.
fn import(options: &Options, image: &Path) -> Result<()> {
    let started = Instant::now();
    loop {
        let done = tool(options, &options.parts.join("usr/bin/ctr"))
            .args(["--namespace", "k8s.io", "images", "import"])
            .arg(image)
            .stdin(Stdio::null())
            .output()
            .context("starting ctr")?;
        if done.status.success() {
            return Ok(());
        }
        if started.elapsed() > CONTAINERD {
            bail!(
                "containerd takes no image: {}",
                String::from_utf8_lossy(&done.stderr).trim()
            );
        }
        std::thread::sleep(PAUSE);
    }
}

fn kubelet(options: &Options) -> Result<Child> {
    start(options, KUBELET, &options.kubernetes, |command| {
        let folder = options.folder.display();
        command.args([
            "kubelet",
            &format!("--config={folder}/kubelet.yaml"),
            &format!("--kubeconfig={folder}/kubelet.kubeconfig"),
            &format!("--hostname-override={}", options.name),
            &format!("--node-ip={}", options.address),
            "--cloud-provider=external",
            "--cert-dir=/var/lib/kubelet/pki",
        ]);
    })
}

/// The node service of volumes, with the rights of the machine's kubelet.
fn csi_node(options: &Options, cloudwit: &Path) -> Result<Child> {
    fs::create_dir_all(PLUGINS).with_context(|| format!("making {PLUGINS}"))?;
    start(options, CSI_NODE, cloudwit, |command| {
        let folder = options.folder.display();
        command.env("NODE_NAME", &options.name).args([
            "csi-node",
            &format!("--driver-name={DRIVER}"),
            &format!("--sysfs={SYSFS}"),
            &format!("--kubeconfig={folder}/kubelet.kubeconfig"),
            "-v=2",
        ]);
    })
}

fn proxy(options: &Options) -> Result<Child> {
    start(options, "kube-proxy", &options.kubernetes, |command| {
        command.args([
            "kube-proxy",
            &format!("--kubeconfig={}/proxy.kubeconfig", options.folder.display()),
            &format!("--hostname-override={}", options.name),
            &format!("--cluster-cidr={CLUSTER_CIDR}"),
            "--proxy-mode=nftables",
            // Both are settings of the whole machine.
            "--conntrack-max-per-core=0",
            "--conntrack-min=0",
        ]);
    })
}

fn start(options: &Options, name: &str, program: &Path, flags: impl FnOnce(&mut Command)) -> Result<Child> {
    let log = options.folder.join(name).with_extension("log");
    let file = OpenOptions::new().create(true).append(true).open(&log);
    let file = file.with_context(|| format!("making {}", log.display()))?;
    let mut command = tool(options, program);
    flags(&mut command);
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone().context("opening a log twice")?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("starting {name}"))
}

fn tool(options: &Options, program: &Path) -> Command {
    with_parts(Command::new(program), &options.parts)
}
