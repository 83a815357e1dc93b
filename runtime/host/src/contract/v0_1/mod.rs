//! Version 0.1 of the contract: bindings, linking and calls.
//!
//! Arguments are converted in `convert`, answers in `answers`; `imports` is what guests may import.

pub(crate) mod answers;
pub(crate) mod convert;
pub(crate) mod description;
pub(crate) mod imports;
mod labels;
mod small;
pub(crate) mod small_answers;
mod tagging;
pub(crate) mod volume_answers;
mod volume_convert;
mod volumes;

use std::path::Path;

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{
    Abilities, AnnotationChange, Balancer, Failure, NewRoute, NodeRef, Presence, Route, RouteOutcome, RouteTokens,
    Service, TagChange, Tags, Target, TargetUpdate,
};
use wasmtime::Store;
use wasmtime::component::{Component, HasSelf, Instance, InstancePre, Linker};

use crate::LoadError;
use crate::call::answer::limits;
use crate::call::answer::{self, Checked, Screen};
use crate::call::instance::CallState;
use crate::call::walk::Walk;
use crate::contract::adapter::{Adapter, CallError, Description, Listed, Mismatch, Problem, Reply};
use crate::load::version::Contract;
use generated::exports::cloudwit::provider as exports;

pub(crate) mod generated {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "host",
        imports: {
            "cloudwit:provider/state.lock": async | trappable,
            default: trappable,
        },
        exports: { default: async },
        with: {
            "cloudwit:provider/keys.key": crate::secrets::keys::Key,
            "cloudwit:provider/state.held": crate::state::OwnedGuard,
        },
    });
}

/// Offers guests of this version what they may import besides WASI.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    generated::Host_::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)
}

/// A component of this version: linked, with the places of the functions it exports.
pub(crate) struct V0_1 {
    pre: InstancePre<CallState>,
    info: exports::info::GuestIndices,
    instances: Option<exports::instances::GuestIndices>,
    load_balancers: Option<exports::load_balancers::GuestIndices>,
    routes: Option<exports::routes::GuestIndices>,
    volumes: volumes::VolumeExports,
    small: small::SmallExports,
    volume_labels: Option<exports::volume_labels::GuestIndices>,
    tagging: Option<exports::tagging::GuestIndices>,
}

type GuestResult<T> = Result<T, generated::cloudwit::provider::common::Failure>;

impl V0_1 {
    /// Links the component and finds the functions of the interfaces it exports. Their types are not checked yet.
    pub fn link(
        file: &Path,
        linker: &Linker<CallState>,
        component: &Component,
        abilities: Abilities,
    ) -> Result<Self, LoadError> {
        let pre = linker.instantiate_pre(component).map_err(|error| {
            let error = answer::shortened(&format!("{error:#}"), limits::MESSAGE);
            crate::load::version::missing_import(file, format!("what cannot be linked ({error})"))
        })?;
        let shape = |interface: &str| {
            let interface = interface.to_owned();
            move |error: wasmtime::Error| LoadError::OtherShape {
                file: file.into(),
                interface,
                problem: answer::shortened(&format!("{error:#}"), limits::MESSAGE),
            }
        };
        Ok(Self {
            info: exports::info::GuestIndices::new(&pre).map_err(shape("info"))?,
            instances: abilities
                .instances
                .then(|| exports::instances::GuestIndices::new(&pre).map_err(shape("instances")))
                .transpose()?,
            load_balancers: abilities
                .load_balancers
                .then(|| exports::load_balancers::GuestIndices::new(&pre).map_err(shape("load-balancers")))
                .transpose()?,
            routes: abilities
                .routes
                .then(|| exports::routes::GuestIndices::new(&pre).map_err(shape("routes")))
                .transpose()?,
            volumes: volumes::VolumeExports::find(&pre, abilities.volumes)
                .map_err(|(interface, error)| shape(interface)(error))?,
            small: small::SmallExports::find(&pre, abilities).map_err(|(interface, error)| shape(interface)(error))?,
            volume_labels: abilities
                .volume_labels
                .then(|| exports::volume_labels::GuestIndices::new(&pre).map_err(shape("volume-labels")))
                .transpose()?,
            tagging: abilities
                .tagging
                .then(|| exports::tagging::GuestIndices::new(&pre).map_err(shape("tagging")))
                .transpose()?,
            pre,
        })
    }

    async fn instantiate(&self, store: &mut Store<CallState>) -> Result<Instance, CallError> {
        Ok(self.pre.instantiate_async(store).await?)
    }

    async fn info(&self, store: &mut Store<CallState>) -> Result<exports::info::Guest, CallError> {
        let instance = self.instantiate(store).await?;
        Ok(self.info.load(store, &instance)?)
    }

    async fn instances(&self, store: &mut Store<CallState>) -> Result<exports::instances::Guest, CallError> {
        let found = self.instances.as_ref().ok_or(CallError::NotExported("instances"))?;
        let instance = self.instantiate(store).await?;
        Ok(found.load(store, &instance)?)
    }

    async fn load_balancers(&self, store: &mut Store<CallState>) -> Result<exports::load_balancers::Guest, CallError> {
        let found = self
            .load_balancers
            .as_ref()
            .ok_or(CallError::NotExported("load-balancers"))?;
        let instance = self.instantiate(store).await?;
        Ok(found.load(store, &instance)?)
    }

    async fn routes(&self, store: &mut Store<CallState>) -> Result<exports::routes::Guest, CallError> {
        let found = self.routes.as_ref().ok_or(CallError::NotExported("routes"))?;
        let instance = self.instantiate(store).await?;
        Ok(found.load(store, &instance)?)
    }
}

/// The guest's answer in the words of the model.
async fn converted<T, U, F>(
    screen: Screen<'_>,
    result: GuestResult<T>,
    convert: impl FnOnce(T) -> F,
) -> Result<Result<U, Failure>, CallError>
where
    F: Future<Output = Checked<U>>,
{
    Ok(match result {
        Ok(answer) => Ok(convert(answer).await?),
        Err(failure) => Err(answers::failure(screen, failure)?),
    })
}

impl Adapter for V0_1 {
    fn contract(&self) -> Contract {
        Contract::V0_1
    }

    fn abilities(&self) -> Abilities {
        self.small.add_to(Abilities {
            instances: self.instances.is_some(),
            load_balancers: self.load_balancers.is_some(),
            routes: self.routes.is_some(),
            volumes: self.volumes.abilities(),
            volume_labels: self.volume_labels.is_some(),
            tagging: self.tagging.is_some(),
            ..Abilities::default()
        })
    }

    fn mismatch<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, Option<Mismatch>> {
        Box::pin(async move {
            let instance = self.instantiate(store).await?;
            let loaded = [
                ("info", Some(self.info.load(&mut *store, &instance).map(drop))),
                (
                    "instances",
                    self.instances
                        .as_ref()
                        .map(|found| found.load(&mut *store, &instance).map(drop)),
                ),
                (
                    "load-balancers",
                    self.load_balancers
                        .as_ref()
                        .map(|found| found.load(&mut *store, &instance).map(drop)),
                ),
                (
                    "routes",
                    self.routes
                        .as_ref()
                        .map(|found| found.load(&mut *store, &instance).map(drop)),
                ),
                (
                    "volume-labels",
                    self.volume_labels
                        .as_ref()
                        .map(|found| found.load(&mut *store, &instance).map(drop)),
                ),
                (
                    "tagging",
                    self.tagging
                        .as_ref()
                        .map(|found| found.load(&mut *store, &instance).map(drop)),
                ),
            ];
            let volumes = self.volumes.loaded(&mut *store, &instance);
            let small = self.small.loaded(store, &instance);
            let mismatch = loaded
                .into_iter()
                .chain(volumes)
                .chain(small)
                .find_map(|(interface, loaded)| {
                    Some(Mismatch {
                        interface,
                        problem: answer::shortened(&format!("{:#}", loaded?.err()?), limits::MESSAGE),
                    })
                });
            Ok(Ok(mismatch))
        })
    }

    fn describe<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, Description> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let guest = self.info(store).await?;
            let described = guest.call_describe(store).await?;
            Ok(Ok(description::description(Screen(&redactor), described)?))
        })
    }

    fn check<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, Vec<Problem>> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let guest = self.info(store).await?;
            let found = guest.call_check(store).await?;
            Ok(Ok(description::problems(
                Screen(&redactor),
                &mut Walk::default(),
                found,
            )
            .await))
        })
    }

    fn probe<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, ()> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let guest = self.info(store).await?;
            let result = guest.call_probe(store).await?;
            converted(Screen(&redactor), result, async |()| Ok(())).await
        })
    }

    fn lookup<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        nodes: &'a [NodeRef],
    ) -> Reply<'a, Vec<Result<Presence, Failure>>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), self.instances(store).await?);
            let asked: Vec<_> = nodes.iter().map(convert::node_ref).collect();
            let result = guest.call_lookup(store, &asked).await?;
            converted(screen, result, |found| answers::lookup(screen, &mut walk, nodes, found)).await
        })
    }

    fn balancer_name<'a>(&'a self, store: &'a mut Store<CallState>, service: &'a Service) -> Reply<'a, String> {
        Box::pin(async move {
            let redactor = store.data().log.redactor();
            let guest = self.load_balancers(store).await?;
            let name = guest.call_name(store, &convert::service(service)).await?;
            Ok(Ok(answers::balancer_name(Screen(&redactor), name)?))
        })
    }

    fn get_balancer<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        service: &'a Service,
    ) -> Reply<'a, Option<Balancer>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), self.load_balancers(store).await?);
            let result = guest.call_get(store, &convert::service(service)).await?;
            converted(screen, result, async |found| match found {
                Some(found) => answers::balancer(screen, &mut walk, found).await.map(Some),
                None => Ok(None),
            })
            .await
        })
    }

    fn ensure_balancer<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        service: &'a Service,
        targets: &'a [Target],
        token: Option<&'a str>,
    ) -> Reply<'a, Balancer> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), self.load_balancers(store).await?);
            let (service, targets) = (convert::service(service), convert::targets(targets));
            let result = guest.call_ensure(store, &service, &targets, token).await?;
            converted(screen, result, |made| {
                answers::ensured_balancer(screen, &mut walk, made)
            })
            .await
        })
    }

    fn update_targets<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        updates: &'a [TargetUpdate<'a>],
        targets: &'a [Target],
    ) -> Reply<'a, Vec<Result<Vec<AnnotationChange>, Failure>>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), self.load_balancers(store).await?);
            let asked: Vec<_> = updates.iter().map(convert::target_update).collect();
            let targets = convert::targets(targets);
            let result = guest.call_update_targets(store, &asked, &targets).await?;
            converted(screen, result, |results| {
                answers::target_updates(screen, &mut walk, updates.len(), results)
            })
            .await
        })
    }

    fn delete_balancer<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        service: &'a Service,
        token: Option<&'a str>,
    ) -> Reply<'a, Vec<AnnotationChange>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), self.load_balancers(store).await?);
            let result = guest.call_delete(store, &convert::service(service), token).await?;
            converted(screen, result, |changes| {
                answers::annotation_changes(screen, &mut walk, changes)
            })
            .await
        })
    }

    fn list_routes<'a>(&'a self, store: &'a mut Store<CallState>) -> Reply<'a, Listed<Route>> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), self.routes(store).await?);
            let result = guest.call_list(store).await?;
            converted(screen, result, |found| answers::routes(screen, &mut walk, found)).await
        })
    }

    fn apply_routes<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        create: &'a [NewRoute],
        delete: &'a [Route],
        tokens: &'a RouteTokens,
    ) -> Reply<'a, RouteOutcome> {
        Box::pin(async move {
            let (redactor, mut walk) = (store.data().log.redactor(), Walk::default());
            let (screen, guest) = (Screen(&redactor), self.routes(store).await?);
            let creations: Vec<_> = create.iter().map(convert::new_route).collect();
            let deletions: Vec<_> = delete.iter().map(convert::route_to_guest).collect();
            let asked = (create.len(), delete.len());
            let tokens = convert::route_tokens(tokens, asked);
            let result = guest.call_apply(store, &creations, &deletions, &tokens).await?;
            converted(screen, result, |outcome| {
                answers::outcome(screen, &mut walk, asked, outcome)
            })
            .await
        })
    }

    fn change_tags<'a>(
        &'a self,
        store: &'a mut Store<CallState>,
        change: TagChange,
        nodes: &'a [NodeRef],
        tags: &'a Tags,
    ) -> Reply<'a, Each<()>> {
        self.changed_tags(store, change, nodes, tags)
    }
}
