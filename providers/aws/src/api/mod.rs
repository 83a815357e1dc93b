//! The way to AWS: a form in, XML out, for every service alike.
//!
//! ```text
//!   api.ec2("DescribeInstances").list("InstanceId", ids).send()   -> the answer's element
//!   api.elb_v2("DescribeTargetGroups").pages(&["TargetGroups"], read) -> all items of all pages
//!                 |
//!   form -> auth, signature -> sender -> XML -> error
//!              ^---- once again: credentials that ended, a clock that is wrong
//! ```
//!
//! EC2 numbers lists as `Name.1` and pages by `NextToken`, the load-balancing services as `Name.member.1` and by `Marker`; both are known
//! here and nowhere else.

pub(crate) mod by_ids;
pub mod endpoints;
pub mod error;
pub(crate) mod reading;
pub mod sender;

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::http::each_page;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::token::{Tried, second_chance};
use cloudwit_guest_sdk::xml::Element;

use crate::api::endpoints::{Endpoints, Service};
use crate::api::error::AwsError;
use crate::api::sender::Sender;
use crate::auth::Credentials;
use crate::config::Config;

/// Signs, sends and reads.
#[derive(Debug)]
pub struct Api {
    sender: Sender,
    endpoints: Endpoints,
    credentials: Credentials,
}

impl Api {
    /// For this configuration.
    pub fn new(config: &Config, context: Context) -> Self {
        let endpoints = Endpoints::new(config);
        let credentials = Credentials::new(config, endpoints.of(Service::Sts).clone());
        Self {
            sender: Sender::new(context),
            endpoints,
            credentials,
        }
    }

    /// Begins a call of EC2.
    pub fn ec2(&self, action: &'static str) -> Call<'_> {
        self.call(Service::Ec2, action)
    }

    /// Begins a call for classic load balancers.
    pub fn elb(&self, action: &'static str) -> Call<'_> {
        self.call(Service::Elb, action)
    }

    /// Begins a call for network load balancers.
    pub fn elb_v2(&self, action: &'static str) -> Call<'_> {
        self.call(Service::ElbV2, action)
    }

    /// Begins a call.
    pub fn call(&self, service: Service, action: &'static str) -> Call<'_> {
        Call {
            api: self,
            service,
            action,
            form: Form::new().field("Action", action).field("Version", service.version()),
            filters: 0,
        }
    }

    /// One call, with a second chance where temporary credentials ended.
    fn send(&self, service: Service, action: &str, form: &Form) -> Result<Element, AwsError> {
        let endpoint = self.endpoints.of(service);
        second_chance(
            || Ok(self.credentials.current(&self.sender)?),
            |refused| self.credentials.forget(&self.sender, refused),
            |credential| match self.sender.ask(endpoint, action, form, &[], Some(credential)) {
                Err(error) if error.may_be_expiry() => Ok(Tried::Refused(error)),
                answer => answer.map(Tried::Done),
            },
        )
    }
}

/// A call that is being written.
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until it is sent"]
pub struct Call<'a> {
    api: &'a Api,
    service: Service,
    action: &'static str,
    form: Form,
    filters: usize,
}

impl Call<'_> {
    /// Adds a field.
    pub fn field(mut self, name: impl AsRef<str>, value: impl ToString) -> Self {
        self.form = self.form.field(name, value);
        self
    }

    /// Adds a field if there is a value.
    pub fn field_opt(self, name: impl AsRef<str>, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Adds all fields of a form that a plan has made.
    pub fn form(mut self, form: &Form) -> Self {
        self.form = self.form.extend(form);
        self
    }

    /// Adds a list of plain values, numbered as the service expects it.
    pub fn list<T: AsRef<str>>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.form = match self.service {
            Service::Ec2 => self.form.list(name, values),
            _ => self.form.list(&format!("{name}.member"), values),
        };
        self
    }

    /// Adds tags as a list of keys and values: `Tags.member.1.Key` (load balancing), or `name.1.Key` for EC2.
    pub fn tags(mut self, name: &str, tags: &[Pair]) -> Self {
        let member = if self.service == Service::Ec2 { "." } else { ".member." };
        for (index, tag) in tags.iter().enumerate() {
            let at = format!("{name}{member}{}", (index + 1));
            self.form.push(&format!("{at}.Key"), &tag.key);
            self.form.push(&format!("{at}.Value"), &tag.value);
        }
        self
    }

    /// Adds a filter of EC2: one of the values has to fit, and so for each filter. At most 200 values.
    pub fn filter<T: AsRef<str>>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.filters += 1;
        let at = format!("Filter.{}", self.filters);
        self.form.push(&format!("{at}.Name"), name);
        self.form = self.form.list(&format!("{at}.Value"), values);
        self
    }

    /// Sends it. For the load-balancing services this is what is in `ActionResult`, empty when there is none.
    ///
    /// # Errors
    /// With AWS's code, and the failure for it.
    pub fn send(self) -> Result<Element, AwsError> {
        let answer = self.api.send(self.service, self.action, &self.form)?;
        Ok(match self.service {
            Service::Ec2 => answer,
            _ => answer
                .child(&format!("{}Result", self.action))
                .cloned()
                .unwrap_or_default(),
        })
    }

    /// Sends it; none when AWS refuses it with one of these codes.
    ///
    /// # Errors
    /// As [`send`](Self::send), for all other codes.
    pub fn send_unless(self, codes: &[&str]) -> Result<Option<Element>, AwsError> {
        match self.send() {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is(codes) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends it for each page and reads every item in the list that `path` leads to.
    ///
    /// # Errors
    /// As [`send`](Self::send), and the error of `read`.
    pub fn pages<T>(
        self,
        path: &[&str],
        mut read: impl FnMut(&Element) -> Result<T, Failure>,
    ) -> Result<Vec<T>, AwsError> {
        let mut items = Vec::new();
        self.each(path, &mut |item| {
            items.push(read(item)?);
            Ok(())
        })?;
        Ok(items)
    }

    /// The part of [`pages`](Self::pages) that does not depend on what is read, so that the component has it once.
    fn each(self, path: &[&str], read: &mut dyn FnMut(&Element) -> Result<(), Failure>) -> Result<(), AwsError> {
        let (token_field, token_name, item) = match self.service {
            Service::Ec2 => ("NextToken", "nextToken", "item"),
            _ => ("Marker", "NextMarker", "member"),
        };
        each_page(|token| {
            let answer = self.clone().field_opt(token_field, token).send()?;
            if let Some(list) = answer.at(path) {
                list.children(item).try_for_each(&mut *read)?;
            }
            Ok(answer.text(token_name).map(Into::into))
        })
    }
}

#[cfg(test)]
mod tests;
