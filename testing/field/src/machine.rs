//! A virtual machine that runs an agent, and whose power goes.
//!
//! Purpose: QEMU with Debian's kernel, booted from an archive in memory, with a disk that is ours
//! or a piece of persistent memory that is a file.
//! Invariants: the machine is a child of this process and ends with its value, by its process's id.
//! Thread safety: one owner; a thread of its own reads the serial line and ends with it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::agent::{Orders, Said};
use crate::archive::Archive;
use crate::disk::SECTOR_BYTES;
use crate::needs::{self, Kernel};

/// Where the archive has the agent, and the libraries that it was linked with.
const AGENT: &str = "bin/field";
const LIBRARIES: &str = "lib";
/// Bytes of the persistent memory.
pub(crate) const MEMORY_BYTES: u64 = 192 << 20;
/// Bytes at its start that Linux takes for what it notes about the rest.
pub(crate) const MEMORY_START: u64 = 2 << 20;
/// Memory of the machine itself, in MiB.
const MACHINE_MIB: u64 = 512;

/// The first program. Persistent memory comes without a label, "raw", where a file system cannot be
/// mapped directly: the first boot makes it of the kind that can, which the later ones find.
const INIT: &str = r#"#!/bin/sh
B=/bin/busybox
$B mount -t devtmpfs dev /dev
$B mount -t proc proc /proc
$B mount -t sysfs sys /sys
for m in /modules/*; do $B insmod $m; done
if [ "$DEVICE" = pmem0 ] && [ "$($B cat /sys/block/pmem0/size)" = "$SECTORS" ]; then
  P=/sys/bus/nd/devices/pfn0.0
  echo namespace0.0 > /sys/bus/nd/drivers/nd_pmem/unbind
  echo ram > $P/mode
  echo 2097152 > $P/align
  echo 7ad3c1f0-5e0b-4c1c-9a53-3f1d8c1b2a77 > $P/uuid
  echo namespace0.0 > $P/namespace
  echo pfn0.0 > /sys/bus/nd/drivers/nd_pmem/bind
fi
LOADER=
for l in /lib/ld-*; do [ -e $l ] && LOADER="$l --library-path /lib"; done
$B mount -t ext4 -o "$MOUNT" /dev/$DEVICE /mnt && $LOADER /bin/field agent /mnt/store $AGENT
$B umount /mnt
$B poweroff -f
"#;

/// What machines are made from.
pub(crate) struct Parts {
    program: PathBuf,
    kernel: Kernel,
    shell: Vec<u8>,
    /// Makes file systems.
    pub(crate) mkfs: PathBuf,
}

impl Parts {
    /// Finds them.
    ///
    /// # Errors
    /// In words: what is missing, and which package has it.
    pub(crate) fn find() -> Result<Self, String> {
        Ok(Self {
            program: needs::program("qemu-system-x86_64", "qemu-system-x86")?,
            shell: needs::shell()?,
            mkfs: needs::program("mkfs.ext4", "e2fsprogs")?,
            kernel: needs::kernel()?,
        })
    }

    /// What the machine boots from.
    pub(crate) fn archive(&self) -> Result<Vec<u8>, String> {
        let own = std::env::current_exe().map_err(|error| format!("where is this? {error}"))?;
        let mut archive = Archive::default();
        for name in ["bin", "dev", LIBRARIES, "mnt", "modules", "proc", "sys"] {
            archive.directory(name);
        }
        archive.program("init", INIT.as_bytes());
        archive.program("bin/busybox", &self.shell);
        archive.program("bin/sh", &self.shell);
        archive.program(AGENT, &needs::read(&own)?);
        for library in needs::libraries()? {
            let name = library.file_name().unwrap_or_default().to_string_lossy();
            archive.program(&format!("{LIBRARIES}/{name}"), &needs::read(&library)?);
        }
        for (name, bytes) in &self.kernel.modules {
            archive.program(&format!("modules/{name}"), bytes);
        }
        Ok(archive.finish())
    }
}

/// What the store lies on.
pub(crate) enum Medium<'a> {
    /// A disk behind this socket.
    Disk(&'a Path),
    /// This file as persistent memory.
    Memory(&'a Path),
}

/// A machine that runs.
pub(crate) struct Machine {
    process: Child,
    lines: Receiver<String>,
    /// The last lines that came, for whom it does not do what is expected.
    tail: Vec<String>,
}

impl Machine {
    /// Switches it on.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn boot(
        parts: &Parts,
        archive: &Path,
        medium: &Medium<'_>,
        orders: &Orders,
    ) -> Result<Self, String> {
        let commits = orders.commits.map_or("-".to_owned(), |commits| commits.to_string());
        let Orders { ground, seed, round, durable, .. } = orders;
        let agent = format!("{} {seed} {round} {durable} {commits}", ground.name());
        let (device, mount) = match medium {
            Medium::Disk(_) => ("vda", "noatime"),
            Medium::Memory(_) => ("pmem0", "noatime,dax=always"),
        };
        let sectors = MEMORY_BYTES / 512;
        // What the kernel does not know it gives to the first program, as variables. It looks
        // whether its timer ticks, and panics where the emulator had no processor for that time,
        // unless it is told not to look.
        let words = format!(
            "console=ttyS0 loglevel=1 panic=-1 no_timer_check DEVICE={device} MOUNT={mount} \
             SECTORS={sectors} AGENT=\"{agent}\""
        );
        let mut command = Command::new(&parts.program);
        // Emulated, so that it runs wherever it is asked to: within virtual machines KVM is missing
        // or half there.
        command.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-nodefaults", "-no-reboot"]);
        command.args(["-display", "none", "-serial", "stdio", "-smp", "1"]);
        command.arg("-kernel").arg(&parts.kernel.image).arg("-initrd").arg(archive);
        command.args(["-append", &words]);
        match medium {
            Medium::Disk(socket) => {
                let node = "driver=nbd,node-name=disk,export=disk,server.type=unix";
                let socket = socket.display();
                command.args(["-m", &MACHINE_MIB.to_string()]);
                command.args(["-blockdev", &format!("{node},server.path={socket}")]);
                let sector = SECTOR_BYTES;
                let sectors = format!("logical_block_size={sector},physical_block_size={sector}");
                let device = format!("virtio-blk-pci,drive=disk,write-cache=on,{sectors}");
                command.args(["-device", &device]);
            }
            Medium::Memory(file) => {
                let file = file.display();
                let backend = "memory-backend-file,id=memory,share=on";
                command.args(["-machine", "pc,nvdimm=on"]);
                command.args(["-m", &format!("{MACHINE_MIB},slots=2,maxmem=2G")]);
                command
                    .args(["-object", &format!("{backend},mem-path={file},size={MEMORY_BYTES}")]);
                command.args(["-device", "nvdimm,memdev=memory,id=nvdimm"]);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process =
            command.spawn().map_err(|error| format!("could not start QEMU: {error}"))?;
        let (sender, lines) = std::sync::mpsc::channel();
        if let Some(output) = process.stdout.take() {
            std::thread::spawn(move || {
                let mut output = BufReader::new(output);
                let mut line = Vec::new();
                while output.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                    if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                        break;
                    }
                    line.clear();
                }
            });
        }
        Ok(Self { process, lines, tail: Vec::new() })
    }

    /// What the agent says next; `None` when it was silent until then.
    ///
    /// # Errors
    /// In words, with the last lines: when the machine has ended or the agent has failed.
    pub(crate) fn listen(&mut self, until: Instant) -> Result<Option<Said>, String> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let said = Said::parse(&line);
                    self.note(line);
                    match said {
                        Some(Said::Failed(words) | Said::Refused(words)) => return Err(words),
                        Some(said) => return Ok(Some(said)),
                        None => {}
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("the machine ended by itself:\n{}", self.tail()));
                }
            }
        }
    }

    /// The last lines of the serial line.
    pub(crate) fn tail(&self) -> String {
        self.tail.concat()
    }

    /// Takes its power away, and returns what its agent had said before.
    pub(crate) fn cut(mut self) -> Vec<Said> {
        self.end();
        self.lines.iter().filter_map(|line| Said::parse(&line)).collect()
    }

    /// Waits until it has switched itself off.
    pub(crate) fn wait(mut self, patience: Duration) -> Result<(), String> {
        let start = Instant::now();
        while start.elapsed() < patience {
            match self.process.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                Ok(Some(_)) => return Ok(()),
                Err(error) => return Err(format!("could not wait for QEMU: {error}")),
            }
        }
        Err(format!("the machine does not switch itself off:\n{}", self.tail()))
    }

    fn note(&mut self, line: String) {
        const LINES_MAX: usize = 30;
        if self.tail.len() == LINES_MAX {
            self.tail.remove(0);
        }
        self.tail.push(line);
    }

    fn end(&mut self) {
        // It may have ended already, which is as well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}
