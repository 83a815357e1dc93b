//! One contender: a cluster of its own in moto with a key of its own, by which its calls are told from all others, an API server of its own,
//! and four pieces of work.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use cloudwit_bench::measure::family::Family;
use cloudwit_bench::measure::pairs::Reading;
use cloudwit_bench::measure::{Measure, Unit};
use cloudwit_bench::scene::run_folder::RunFolder;
use cloudwit_test_support::clouds::moto::{AwsCluster, AwsMachine, Credentials, Moto, REGION};
use cloudwit_test_support::files::aws::{aws_files, cloud_config};
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::deployment::{CLUSTER_CIDR, Deployment};
use cloudwit_test_support::{ApiServer, NodeBuilder, ServiceBuilder};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

/// No piece of work takes that long; without it a lost Node would hang the benchmark.
const LIMIT: Duration = Duration::from_secs(900);

/// Between two looks. Looks are no calls of a contender, but they cost the API server and moto a little.
const LOOK: Duration = Duration::from_millis(200);

/// Objects that are made at the same time.
const MAKERS: usize = 16;

/// The subnet in which all machines are.
const SUBNET: usize = 0;

/// Who works.
pub enum Contender {
    /// Cloudwit.
    Ours {
        /// The folder with its program.
        folder: PathBuf,
        /// The component of the provider `aws`.
        component: PathBuf,
    },
    /// This program.
    Peer(PathBuf),
}

/// What a contender needed.
#[derive(Debug)]
pub struct Measured {
    /// In the same order for both.
    pub readings: Vec<Reading>,
    /// How often it called each action, the most frequent first.
    pub actions: Vec<(String, usize)>,
}

/// All that stands before a contender starts.
pub struct Scene<'a> {
    moto: &'a Moto,
    contender: Contender,
    key: Credentials,
    cluster: AwsCluster,
    machines: Vec<AwsMachine>,
    services: u16,
}

impl<'a> Scene<'a> {
    /// Makes the cluster and its machines in the cloud.
    pub async fn set(moto: &'a Moto, contender: Contender, nodes: u16, services: u16) -> Result<Self> {
        let name = name(&contender);
        let everything =
            json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Action": "*", "Resource": "*" }] });
        let key = moto.user(name, &everything).await?;
        let cluster = moto.cluster(name).await?;
        let machines = cluster
            .machines(moto, SUBNET, nodes)
            .await
            .context("starting instances")?;
        Ok(Self {
            moto,
            contender,
            key,
            cluster,
            machines,
            services,
        })
    }

    /// Who it is.
    pub fn name(&self) -> &'static str {
        name(&self.contender)
    }

    /// Does all the work.
    pub async fn play(self) -> Result<Measured> {
        let server = ApiServer::start().await?;
        let client = server.client();
        join(&client, &self.machines).await?;
        let folder = RunFolder::new("aws")?;
        let started = Instant::now();
        let process = self.start(&folder.path().join(self.name()), server.kubeconfig())?;
        let family = Family::watch(process.pid());
        let mut work = Work {
            scene: &self,
            client: &client,
            process: &process,
            readings: Vec::new(),
        };
        let done = work.all(started).await;
        done.map_err(|error| anyhow!("{error:#}\n{}", process.log_end()))?;
        let mut readings = work.readings;
        let used = xtask::run::process::usage(process.pid()).context("the contender has ended")?;
        let peak = family.peak()?.max(used.peak_memory);
        readings.extend([
            Reading::new(Measure::new("cpu", "CPU time", Unit::Seconds), used.cpu_seconds),
            Reading::new(Measure::new("peak-memory", "peak memory", Unit::Bytes), peak as f64),
        ]);
        let mut counts = BTreeMap::new();
        let calls = self.calls().await?;
        let all = Measure::new("all-calls", "all calls", Unit::Count);
        readings.push(Reading::new(all, calls.len() as f64));
        for call in calls {
            *counts.entry(call).or_insert(0) += 1;
        }
        let mut actions: Vec<_> = counts.into_iter().collect();
        actions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        drop((process, server));
        folder.done()?;
        Ok(Measured { readings, actions })
    }

    fn start(&self, folder: &Path, kubeconfig: &Path) -> Result<Child> {
        let url = self.moto.url();
        match &self.contender {
            Contender::Ours {
                folder: programs,
                component,
            } => {
                let deployment = Deployment::of("aws", folder, programs, component)?;
                let files = aws_files(&self.cluster, url, &self.key, &deployment)?;
                let flags = ["--configure-cloud-routes=false"];
                Ok(deployment.start_on(kubeconfig, &files, &flags)?.0)
            }
            Contender::Peer(program) => {
                std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
                let config = folder.join("cloud-config");
                std::fs::write(&config, cloud_config(&self.cluster, url)).context("writing the cloud config")?;
                let arguments = [
                    format!("AWS_ACCESS_KEY_ID={}", self.key.access_key),
                    format!("AWS_SECRET_ACCESS_KEY={}", self.key.secret_key),
                    format!("AWS_REGION={REGION}"),
                    program.display().to_string(),
                    "--cloud-provider=aws".to_owned(),
                    format!("--cloud-config={}", config.display()),
                    format!("--kubeconfig={}", kubeconfig.display()),
                    format!("--cluster-name={}", self.cluster.name),
                    format!("--cluster-cidr={CLUSTER_CIDR}"),
                    "--configure-cloud-routes=false".to_owned(),
                    "--leader-elect=false".to_owned(),
                    "--secure-port=0".to_owned(),
                ];
                // It takes its keys from the environment.
                Child::start(Path::new("/usr/bin/env"), &arguments, &folder.join("peer.log"))
            }
        }
    }

    /// The actions it has called so far.
    async fn calls(&self) -> Result<Vec<String>> {
        let calls = self.moto.calls().await?;
        let own = calls.into_iter().filter(|call| call.key == self.key.access_key);
        Ok(own.map(|call| call.action).collect())
    }

    /// How many machines are behind each load balancer of the cluster.
    async fn behind(&self) -> Result<Vec<usize>> {
        let answer = self.moto.call("elb", "describe_load_balancers", json!({})).await?;
        let balancers = answer["LoadBalancerDescriptions"]
            .as_array()
            .context("no list of load balancers")?;
        let own = balancers
            .iter()
            .filter(|balancer| balancer["VPCId"] == self.cluster.vpc.as_str());
        let size = |balancer: &Value| balancer["Instances"].as_array().map_or(0, Vec::len);
        Ok(own.map(size).collect())
    }
}

fn name(contender: &Contender) -> &'static str {
    match contender {
        Contender::Ours { .. } => "cloudwit",
        Contender::Peer(_) => "upstream",
    }
}

/// The pieces of work, and what each has cost.
struct Work<'a> {
    scene: &'a Scene<'a>,
    client: &'a Client,
    process: &'a Child,
    readings: Vec<Reading>,
}

impl Work<'_> {
    async fn all(&mut self, started: Instant) -> Result<()> {
        let (nodes, services) = (self.scene.machines.len(), usize::from(self.scene.services));
        let mut calls = 0;
        self.until(|| self.initialised(nodes))
            .await
            .context("initialising Nodes")?;
        self.measured("nodes", &format!("{nodes} Nodes initialised"), started, &mut calls)
            .await?;

        let started = Instant::now();
        let client = self.client;
        let make = (0..services).map(|number| async move {
            let service = ServiceBuilder::new(&format!("web-{number}"));
            service.create(client).await
        });
        stream::iter(make)
            .buffer_unordered(MAKERS)
            .try_collect::<Vec<_>>()
            .await
            .context("making Services")?;
        self.until(|| self.balanced(services, nodes))
            .await
            .context("making load balancers")?;
        self.measured(
            "services",
            &format!("{services} Services with {nodes} machines behind each"),
            started,
            &mut calls,
        )
        .await?;

        let machine = self.scene.cluster.machines(self.scene.moto, SUBNET, 1).await?;
        let started = Instant::now();
        join(self.client, &machine).await?;
        self.until(|| self.balanced(services, nodes + 1))
            .await
            .context("adding a machine")?;
        self.measured("node", "one more Node, behind all of them", started, &mut calls)
            .await?;

        let started = Instant::now();
        let api: Api<Service> = Api::default_namespaced(self.client.clone());
        for number in 0..services {
            api.delete(&format!("web-{number}"), &DeleteParams::default()).await?;
        }
        self.until(|| self.none_left()).await.context("deleting Services")?;
        self.measured("deletion", &format!("{services} Services deleted"), started, &mut calls)
            .await
    }

    /// Adds the figures of a piece of work: time, and calls since the last one.
    async fn measured(&mut self, id: &str, what: &str, started: Instant, calls: &mut usize) -> Result<()> {
        let time = started.elapsed().as_secs_f64();
        let now = self.scene.calls().await?.len();
        let figure = |part: &str, unit| Measure::new(format!("{id}-{part}"), format!("{what}: {part}"), unit);
        self.readings.extend([
            Reading::new(figure("calls", Unit::Count), (now - *calls) as f64),
            Reading::new(figure("time", Unit::Seconds), time),
        ]);
        eprintln!("  {what}: {} calls, {time:.1} s", now - *calls);
        *calls = now;
        Ok(())
    }

    async fn until<Fut: Future<Output = Result<()>>>(&self, mut look: impl FnMut() -> Fut) -> Result<()> {
        let begin = Instant::now();
        loop {
            let Err(missing) = look().await else { return Ok(()) };
            ensure!(self.process.runs(), "the contender has ended");
            if begin.elapsed() > LIMIT {
                bail!("not within {LIMIT:?}: {missing:#}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn initialised(&self, count: usize) -> Result<()> {
        let nodes = Api::<Node>::all(self.client.clone())
            .list(&ListParams::default())
            .await?;
        let done = nodes.iter().filter(|node| {
            let addresses = node.status.as_ref().and_then(|status| status.addresses.as_deref());
            let known = addresses
                .unwrap_or_default()
                .iter()
                .any(|address| address.type_ == "InternalIP");
            known && !is_uninitialised(node)
        });
        let done = done.count();
        ensure!(done == count, "{done} of {count} Nodes are initialised");
        Ok(())
    }

    async fn balanced(&self, services: usize, machines: usize) -> Result<()> {
        let listed = Api::<Service>::default_namespaced(self.client.clone())
            .list(&ListParams::default())
            .await?;
        let published = listed.iter().filter(|service| {
            let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
            balancer.is_some_and(|balancer| balancer.ingress.as_ref().is_some_and(|points| !points.is_empty()))
        });
        let published = published.count();
        ensure!(
            published == services,
            "{published} of {services} Services have an address"
        );
        let behind = self.scene.behind().await?;
        ensure!(
            behind.len() == services,
            "there are {} load balancers, not {services}",
            behind.len()
        );
        ensure!(
            behind.iter().all(|size| *size == machines),
            "behind the load balancers are {behind:?} machines, not {machines}"
        );
        Ok(())
    }

    async fn none_left(&self) -> Result<()> {
        let listed = Api::<Service>::default_namespaced(self.client.clone())
            .list(&ListParams::default())
            .await?;
        let left = listed
            .iter()
            .filter(|service| service.name_any().starts_with("web-"))
            .count();
        ensure!(left == 0, "{left} Services are left");
        let behind = self.scene.behind().await?;
        ensure!(behind.is_empty(), "{} load balancers are left", behind.len());
        Ok(())
    }
}

/// Registers Nodes as kubelet does with `--provider-id`, which spares both contenders the search by name.
async fn join(client: &Client, machines: &[AwsMachine]) -> Result<()> {
    let node = |machine: &AwsMachine| {
        let node = NodeBuilder::new(&machine.private_dns).node_ip(&machine.private_ip);
        node.provider_id(&machine.provider_id())
    };
    let made = machines.iter().map(|machine| {
        let node = node(machine);
        async move { node.create(client).await }
    });
    stream::iter(made)
        .buffer_unordered(MAKERS)
        .try_collect::<Vec<Node>>()
        .await
        .context("making Nodes")?;
    Ok(())
}
