//! The address of a listener: a TCP address, a Unix socket, or both.
//!
//! A Unix socket is a file, and its mode says which accounts of this machine may connect. A start replaces the file of a
//! dead server, but neither that of a live server nor a file of another kind. Not here: limits of connections.

use crate::transport::Transport;
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, UnixListener, UnixStream};

/// The configured addresses of a listener.
#[derive(Clone, Debug, Default)]
pub struct Listen {
    /// Address and port.
    pub tcp: Option<String>,
    /// A Unix socket.
    pub unix: Option<UnixSocket>,
}

/// The settings of a Unix socket.
#[derive(Clone, Debug)]
pub struct UnixSocket {
    /// The path of its file.
    pub path: PathBuf,
    /// The mode of its file.
    pub mode: u32,
}

/// The file of a Unix socket. Dropping this removes the file.
#[derive(Debug)]
pub struct SocketFile {
    /// Its absolute path.
    pub path: PathBuf,
    id: FileId,
}

/// Device, inode and time of a file: the system reuses an inode after its file is deleted.
type FileId = (u64, u64, i64, i64);

fn id(path: &Path) -> io::Result<FileId> {
    let file = fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino(), file.mtime(), file.mtime_nsec()))
}

/// The open sockets of a listener.
pub(crate) struct Listeners {
    tcp: Option<TcpListener>,
    unix: Option<UnixListener>,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerAddress {
    Tcp(SocketAddr),
    /// A process of this machine, over the Unix socket.
    Unix,
}

impl PeerAddress {
    /// The address for limits and checks: a Unix socket counts as loopback.
    pub(crate) fn ip(self) -> IpAddr {
        match self {
            Self::Tcp(address) => address.ip(),
            Self::Unix => Ipv4Addr::LOCALHOST.into(),
        }
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}

impl Listen {
    /// TCP only.
    pub fn tcp(address: &str) -> Self {
        Self { tcp: Some(address.to_owned()), unix: None }
    }

    /// Opens the sockets. Also returns the TCP address with the port that the system chose, and the file.
    pub(crate) async fn open(&self) -> io::Result<(Listeners, Option<SocketAddr>, Option<SocketFile>)> {
        let tcp = match &self.tcp {
            Some(address) => Some(TcpListener::bind(address).await.map_err(|why| of(address, &why))?),
            None => None,
        };
        let address = tcp.as_ref().map(TcpListener::local_addr).transpose()?;
        let (unix, file) = match &self.unix {
            Some(socket) => {
                let opened = socket.open().await;
                let (unix, file) = opened.map_err(|why| of(&socket.path.display().to_string(), &why))?;
                (Some(unix), Some(file))
            }
            None => (None, None),
        };
        Ok((Listeners { tcp, unix }, address, file))
    }
}

/// Adds the address or path that failed to the error.
fn of(place: &str, why: &io::Error) -> io::Error {
    io::Error::new(why.kind(), format!("listen on {place}: {why}"))
}

impl UnixSocket {
    async fn open(&self) -> io::Result<(UnixListener, SocketFile)> {
        let path = std::path::absolute(&self.path)?;
        make_room(&path).await?;
        let listener = UnixListener::bind(&path)?;
        let file = SocketFile { id: id(&path)?, path };
        fs::set_permissions(&file.path, Permissions::from_mode(self.mode))?;
        Ok((listener, file))
    }
}

/// Removes the socket of a dead server.
async fn make_room(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(file) if file.file_type().is_socket() => {}
        Ok(_) => return Err(io::Error::new(ErrorKind::AlreadyExists, "the file is no socket, and stays")),
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(why),
    }
    match UnixStream::connect(path).await {
        Err(why) if why.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
        // A server whose queue of connections is full is live, too.
        Ok(_) => Err(io::Error::new(ErrorKind::AddrInUse, "another process listens there")),
        Err(why) if why.kind() == ErrorKind::WouldBlock => {
            Err(io::Error::new(ErrorKind::AddrInUse, "another process listens there"))
        }
        Err(why) => Err(why),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another server may have created its own file meanwhile.
        if id(&self.path).is_ok_and(|id| id == self.id) {
            // The next start replaces a file that could not be removed.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Listeners {
    /// Returns the next connection.
    pub(crate) async fn accept(&self) -> io::Result<(Transport, PeerAddress)> {
        let tcp = async {
            match &self.tcp {
                Some(tcp) => tcp.accept().await,
                None => std::future::pending().await,
            }
        };
        let unix = async {
            match &self.unix {
                Some(unix) => unix.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = tcp => accepted.map(|(stream, peer)| (Transport::Tcp(stream), PeerAddress::Tcp(peer))),
            accepted = unix => accepted.map(|(stream, _)| (Transport::Unix(stream), PeerAddress::Unix)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tally-listener-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn socket(folder: &Path) -> Listen {
        Listen { tcp: None, unix: Some(UnixSocket { path: folder.join("s"), mode: 0o660 }) }
    }

    #[tokio::test]
    async fn the_socket_of_a_dead_server_is_replaced_and_that_of_a_live_one_stays() {
        let folder = folder("stale");
        let listen = socket(&folder);
        let (listeners, address, file) = listen.open().await.unwrap();
        assert_eq!(address, None);
        let path = file.as_ref().unwrap().path.clone();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
        let refused = listen.open().await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::AddrInUse);
        assert!(refused.to_string().contains("another process listens there"), "{refused}");

        // A killed server leaves a file without a listener.
        drop(listeners);
        let (_listeners, _, newer) = listen.open().await.unwrap();
        drop(file);
        assert!(path.exists(), "the older one does not remove the file of the newer one");
        drop(newer);
        assert!(!path.exists(), "a clean stop removes it");
        fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn a_file_of_another_kind_stays() {
        let folder = folder("file");
        fs::write(folder.join("s"), "precious").unwrap();
        let refused = socket(&folder).open().await.err().unwrap();
        assert!(refused.to_string().contains("is no socket"), "{refused}");
        assert_eq!(fs::read_to_string(folder.join("s")).unwrap(), "precious");
        fs::remove_dir_all(folder).unwrap();
    }
}
