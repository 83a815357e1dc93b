//! Questions to the API server: whose token is this (TokenReview), may he do that (SubjectAccessReview). Answers are remembered for
//! a while, questions that fail are repeated (`apiserver pkg/server/options`: 10 s each, five times, 500 ms growing by half).

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus};
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How long one question may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Attempts, and the pause after the first.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(500);
/// Questions under way at a time, so that a flood of wrong tokens is not passed on.
const AT_A_TIME: usize = 32;
/// Answers that are remembered at most.
const REMEMBERED: usize = 4096;

/// The way to the API server for reviews.
pub struct Reviewer {
    client: Client,
    turns: Semaphore,
}

impl Reviewer {
    /// For that kubeconfig, or the service account of the Pod; None where there is neither.
    pub async fn new(flag: &str, kubeconfig: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let config = match kubeconfig {
            Some(file) => {
                let read = Kubeconfig::read_from(file).map_err(anyhow::Error::from);
                let config = match read {
                    Ok(read) => Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
                        .await
                        .map_err(anyhow::Error::from),
                    Err(error) => Err(error),
                };
                config.map_err(|error| {
                    anyhow::anyhow!(
                        "{flag}={}: cannot be used: {error:#}; give a kubeconfig file",
                        file.display()
                    )
                })?
            }
            None => match Config::incluster() {
                Ok(config) => config,
                Err(_) => return Ok(None),
            },
        };
        Ok(Some(Self {
            client: Client::try_from(config)?,
            turns: Semaphore::new(AT_A_TIME),
        }))
    }

    /// For other questions to the same API server.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Whose token it is.
    pub async fn token(&self, token: &str) -> Result<TokenReviewStatus, kube::Error> {
        let spec = TokenReviewSpec {
            token: token.to_owned(),
            ..TokenReviewSpec::default()
        };
        let answer = self
            .ask(&TokenReview {
                spec,
                ..TokenReview::default()
            })
            .await?;
        Ok(answer.status.unwrap_or_default())
    }

    /// Whether somebody may do something.
    pub async fn access(&self, spec: SubjectAccessReviewSpec) -> Result<SubjectAccessReviewStatus, kube::Error> {
        let answer = self
            .ask(&SubjectAccessReview {
                spec,
                ..SubjectAccessReview::default()
            })
            .await?;
        Ok(answer.status.unwrap_or_default())
    }

    async fn ask<K>(&self, question: &K) -> Result<K, kube::Error>
    where
        K: kube::Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let _turn = self
            .turns
            .acquire()
            .await
            .map_err(|error| kube::Error::Service(error.into()))?;
        let mut pause = PAUSE;
        for attempt in 1.. {
            let answer = tokio::time::timeout(LIMIT, api.create(&PostParams::default(), question)).await;
            let error = match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(late) => kube::Error::Service(late.into()),
            };
            let passes = matches!(&error, kube::Error::Api(status) if status.code < 500 && status.code != 429);
            if passes || attempt >= ATTEMPTS {
                return Err(error);
            }
            tokio::time::sleep(pause.mul_f64(1.0 + 0.2 * rand::random::<f64>())).await;
            pause = pause.mul_f64(1.5);
        }
        unreachable!("the last attempt returns")
    }
}

/// Answers by question, each until its time is over.
#[derive(Debug)]
pub struct Remembered<Q, A>(Mutex<HashMap<Q, (Instant, A)>>);

impl<Q, A> Default for Remembered<Q, A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Q: Hash + Eq, A: Clone> Remembered<Q, A> {
    /// The answer, if it still holds.
    pub fn get(&self, question: &Q) -> Option<A> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, answer) = answers.get(question)?;
        (*until > Instant::now()).then(|| answer.clone())
    }

    /// Keeps an answer for so long. When there are too many, those whose time is over go, and all if that does not help.
    pub fn put(&self, question: Q, answer: A, hold: Duration) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= REMEMBERED {
            let now = Instant::now();
            answers.retain(|_, (until, _)| *until > now);
            if answers.len() >= REMEMBERED {
                answers.clear();
            }
        }
        answers.insert(question, (Instant::now() + hold, answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_holds_for_its_time_and_there_are_never_too_many() {
        let answers = Remembered::<u32, bool>::default();
        answers.put(1, true, Duration::from_secs(10));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(answers.get(&1), Some(true));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(answers.get(&1), None);
        (0..10_000).for_each(|question| answers.put(question, true, Duration::from_secs(10)));
        assert!(answers.0.lock().unwrap().len() <= REMEMBERED);
    }
}
