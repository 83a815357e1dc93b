//! Requests to AWS for load balancers: three forms, each once in the component, however many calls there are.

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::api::endpoints::Service as Api;
use crate::api::error::AwsError;
use crate::balancers::steps::Step;

impl Aws {
    /// One call with these fields.
    pub(crate) fn ask(&self, service: Api, action: &'static str, fields: &[(&str, &str)]) -> Result<Element, AwsError> {
        self.api.call(service, action).form(&form(fields)).send()
    }

    /// The same for every page: all items of the list that `path` leads to.
    pub(crate) fn ask_all(
        &self,
        service: Api,
        action: &'static str,
        fields: &[(&str, &str)],
        path: &[&str],
    ) -> Result<Vec<Element>, AwsError> {
        let call = self.api.call(service, action).form(&form(fields));
        call.pages(path, |item| Ok(item.clone()))
    }

    /// The same of EC2, for the things that one of these values of a filter fits, in this VPC if one is named. Any number of values.
    pub(crate) fn ask_filtered(
        &self,
        action: &'static str,
        filter: &str,
        values: &[&str],
        vpc: Option<&str>,
        path: &str,
    ) -> Result<Vec<Element>, AwsError> {
        let mut found = Vec::new();
        for part in values.chunks(VALUES) {
            let mut fields: Vec<(String, &str)> = vec![("Filter.1.Name".into(), filter)];
            for (index, value) in part.iter().enumerate() {
                fields.push((format!("Filter.1.Value.{}", (index + 1)), value));
            }
            if let Some(vpc) = vpc {
                fields.push(("Filter.2.Name".into(), "vpc-id"));
                fields.push(("Filter.2.Value.1".into(), vpc));
            }
            let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            found.append(&mut self.ask_all(Api::Ec2, action, &fields, &[path])?);
        }
        Ok(found)
    }

    /// Sends one request of a plan; none when it was done already.
    pub(crate) fn attempt(&self, step: &Step) -> Result<Option<Element>, AwsError> {
        self.api
            .call(step.service, step.action)
            .form(&step.form)
            .send_unless(step.done_by)
    }

    /// Sends one request of a plan.
    pub(crate) fn run(&self, step: &Step) -> Result<(), AwsError> {
        self.attempt(step)?;
        Ok(())
    }

    /// Sends the requests of a plan, in order; the first failure ends it.
    pub(crate) fn run_all(&self, steps: &[Step]) -> Result<(), AwsError> {
        steps.iter().try_for_each(|step| self.run(step))
    }
}

/// Most values of a filter.
const VALUES: usize = 200;

fn form(fields: &[(&str, &str)]) -> Form {
    let mut form = Form::new();
    for (name, value) in fields {
        form.push(name, value);
    }
    form
}

/// The result of a call, none when it was refused with this code.
pub(crate) fn unless(result: Result<Element, AwsError>, code: &str) -> Result<Option<Element>, AwsError> {
    match result {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is(&[code]) => Ok(None),
        Err(error) => Err(error),
    }
}

/// `NAME.member.1`, `NAME.member.2` and so on with these values.
pub(crate) fn members<'a>(name: &str, values: &[&'a str]) -> Vec<(String, &'a str)> {
    let numbered = |(index, value): (usize, &&'a str)| (format!("{name}.member.{}", (index + 1)), *value);
    values.iter().enumerate().map(numbered).collect()
}
