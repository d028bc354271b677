//! Parses the settings of traces. Messages leave out possible secrets.

use crate::config::{Config, Usage};
use tally_traces::{Address, Header, TraceSettings};

/// The longest service name.
const SERVICE_BYTES_MAX: usize = 255;

/// The settings of the span exporter; `None` if it is turned off. They are checked all the same, so that errors show
/// before it is turned on.
pub(crate) fn traces(config: &Config) -> Result<Option<TraceSettings>, Usage> {
    let ratio = config.parse("traces.ratio", "a number from 0 to 1")?;
    let timeout = config.duration("traces.timeout")?;
    let service = config.text("traces.service");
    if service.is_empty() || service.len() > SERVICE_BYTES_MAX {
        return Err(config.wrong("traces.service", &format!("1 to {SERVICE_BYTES_MAX} bytes")));
    }
    let header = match config.text("traces.header") {
        "" => None,
        text => Some(Header::parse(text).ok_or_else(|| {
            Usage("setting `traces.header` must be a header such as `authorization: Bearer …`".into())
        })?),
    };
    let address = match config.text("traces.url") {
        "" => return Ok(None),
        text => Address::parse(text).map_err(|why| Usage(format!("setting `traces.url` {why}")))?,
    };
    let (service, version) = (service.to_owned(), env!("CARGO_PKG_VERSION"));
    Ok(Some(TraceSettings { address, header, timeout, ratio, service, version }))
}
