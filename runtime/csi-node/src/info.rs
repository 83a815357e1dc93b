//! Which machine this is, as the controller wrote it on the machine's Node.

use cloudwit_model::volume::{NODE_ANNOTATION, NodeAnnotation};
use tokio::sync::watch;

/// The annotation [`NODE_ANNOTATION`] of the machine's Node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Annotation {
    /// The Node has not been read yet.
    #[default]
    Unread,
    /// The Node has been read, and has no such annotation.
    Missing,
    /// Its value.
    Value(String),
}

/// What is known about the machine, while it changes.
#[derive(Debug, Clone)]
pub struct NodeInfo {
    driver: String,
    annotation: watch::Receiver<Annotation>,
}

impl NodeInfo {
    /// For the driver of this name.
    pub fn new(driver: String, annotation: watch::Receiver<Annotation>) -> Self {
        Self { driver, annotation }
    }

    /// What is known now.
    ///
    /// # Errors
    ///
    /// What is missing, and where to look.
    pub fn now(&self) -> Result<NodeAnnotation, String> {
        read(&self.annotation.borrow(), &self.driver)
    }

    /// Waits until it is known. Does not end when it never will be.
    pub async fn known(&mut self) -> NodeAnnotation {
        loop {
            if let Ok(known) = self.now() {
                return known;
            }
            if self.annotation.changed().await.is_err() {
                // No reader is left: the process is ending.
                std::future::pending::<()>().await;
            }
        }
    }
}

fn read(annotation: &Annotation, driver: &str) -> Result<NodeAnnotation, String> {
    let value = match annotation {
        Annotation::Unread => return Err("the Node has not been read yet: see the log of this plugin".to_owned()),
        Annotation::Missing => {
            return Err(format!(
                "the Node has no annotation {NODE_ANNOTATION}; Cloudwit's controller writes it: does it run with volumes of {driver}, and does its cloud have this machine?"
            ));
        }
        Annotation::Value(value) => value,
    };
    let read = NodeAnnotation::parse(value).map_err(|error| format!("annotation {NODE_ANNOTATION}: {error}"))?;
    if read.driver == driver {
        Ok(read)
    } else {
        Err(format!(
            "the annotation {NODE_ANNOTATION} is of driver {:?}, and this plugin is of {driver}; see its --driver-name",
            read.driver
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = r#"{"driver":"a.test","nodeID":"m-1","topology":{"zone":"z"}}"#;

    #[test]
    fn what_is_missing_is_reported() {
        for (annotation, part) in [
            (Annotation::Unread, "not been read"),
            (Annotation::Missing, "no annotation csi.cloudwit.dev/node"),
            (Annotation::Value("{".into()), "csi.cloudwit.dev/node:"),
            (
                Annotation::Value(VALUE.replace("a.test", "b.test")),
                "is of driver \"b.test\"",
            ),
        ] {
            let missing = read(&annotation, "a.test").unwrap_err();
            assert!(missing.contains(part), "{missing}");
        }
        assert_eq!(read(&Annotation::Value(VALUE.into()), "a.test").unwrap().node_id, "m-1");
    }

    #[tokio::test]
    async fn machine_is_known_as_soon_as_its_node_reports_it() {
        let (write, annotation) = watch::channel(Annotation::Unread);
        let mut info = NodeInfo::new("a.test".into(), annotation);
        let known = tokio::spawn(async move { info.known().await });
        write.send(Annotation::Missing).unwrap();
        write.send(Annotation::Value(VALUE.into())).unwrap();
        assert_eq!(known.await.unwrap().node_id, "m-1");
    }
}
