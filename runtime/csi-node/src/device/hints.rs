//! Hints of a publish context about a volume's device.

use std::collections::{BTreeMap, HashMap};

use cloudwit_csi::DEVICE_HINT;

/// Hints of one volume; a cloud gives one or two.
const MOST: usize = 16;

/// Bytes of one.
const LONGEST: usize = 1024;

/// What the cloud says about the device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hints {
    /// Its serial number.
    pub serials: Vec<String>,
    /// Its World Wide Name.
    pub wwns: Vec<String>,
    /// Names of links in `/dev/disk/by-id`.
    pub by_id: Vec<String>,
    /// SCSI LUNs.
    pub luns: Vec<u32>,
    /// Paths such as `/dev/sdb`.
    pub paths: Vec<String>,
}

impl Hints {
    /// Reads them. Other keys are the cloud's own plugin's.
    ///
    /// # Errors
    ///
    /// What is wrong with them; also when there is none.
    pub fn parse(context: &HashMap<String, String>) -> Result<Self, String> {
        let hints = context
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(DEVICE_HINT)?, value.trim())));
        // In their order: `serial`, `serial.2`.
        let hints: BTreeMap<&str, &str> = hints.collect();
        if hints.is_empty() {
            return Err(format!(
                "the publish context names no device ({DEVICE_HINT}serial and so on); is the volume attached by Cloudwit?"
            ));
        }
        if hints.len() > MOST {
            return Err(format!(
                "the publish context has {} hints, at most {MOST} are allowed",
                hints.len()
            ));
        }
        let mut read = Self::default();
        for (key, value) in hints {
            if value.is_empty() || value.len() > LONGEST || value.contains(char::is_control) {
                return Err(format!("the hint {key:?} of the publish context has no usable value"));
            }
            let kind = key.split('.').next().unwrap_or_default();
            let text = value.to_owned();
            match kind {
                "serial" => read.serials.push(text),
                "wwn" => read.wwns.push(text),
                "by-id" => read.by_id.push(text),
                "path" => read.paths.push(text),
                "lun" => read
                    .luns
                    .push(value.parse().map_err(|_| format!("{value:?} is not a LUN"))?),
                _ => return Err(format!("the publish context has an unknown hint {key:?}")),
            }
        }
        Ok(read)
    }

    /// Whether they name something that a device says of itself.
    pub fn can_prove(&self) -> bool {
        !self.serials.is_empty() || !self.wwns.is_empty()
    }
}

/// For people: `serial vol-1, lun 3`.
impl std::fmt::Display for Hints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts = |kind: &'static str, values: &[String]| {
            values
                .iter()
                .map(move |value| format!("{kind} {value}"))
                .collect::<Vec<_>>()
        };
        let mut all = texts("serial", &self.serials);
        all.extend(texts("WWN", &self.wwns));
        all.extend(texts("by-id", &self.by_id));
        all.extend(self.luns.iter().map(|lun| format!("LUN {lun}")));
        all.extend(texts("path", &self.paths));
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Hints, String> {
        let pairs = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Hints::parse(&pairs.collect())
    }

    #[test]
    fn hints_are_read_beside_the_clouds_own_context() {
        let read = parse(&[
            ("devicePath", "/dev/xvdba"),
            ("device.csi.cloudwit.dev/serial", "vol1"),
            ("device.csi.cloudwit.dev/serial.2", "vol-1"),
            ("device.csi.cloudwit.dev/lun", "3"),
            ("device.csi.cloudwit.dev/by-id", "wwn-0x5"),
        ])
        .unwrap();
        assert_eq!(read.serials, ["vol1", "vol-1"]);
        assert_eq!((read.luns.as_slice(), read.can_prove()), ([3].as_slice(), true));
        assert_eq!(read.to_string(), "serial vol1, serial vol-1, by-id wwn-0x5, LUN 3");
    }

    #[test]
    fn hints_that_cannot_be_used_are_refused() {
        let key = "device.csi.cloudwit.dev/";
        assert!(parse(&[("devicePath", "/dev/xvdba")]).is_err());
        for (kind, value) in [
            ("serial", ""),
            ("serial", " "),
            ("serial", "a\nb"),
            ("lun", "x"),
            ("lun", "-1"),
            ("guess", "sdb"),
            ("serial", &"x".repeat(LONGEST + 1)),
        ] {
            assert!(parse(&[(&format!("{key}{kind}"), value)]).is_err(), "{kind} {value:?}");
        }
        let many: Vec<String> = (0..=MOST).map(|number| format!("{key}serial.{number}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|key| (key.as_str(), "x")).collect();
        assert!(parse(&many).is_err());
    }
}
