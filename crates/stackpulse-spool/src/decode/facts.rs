//! Records that have no columns of their own: facts of the recording, of processes, threads and images.

use super::{Decoder, Step, from_newest, known};
use crate::columns;
use crate::error::Damage;
use crate::record::{Host, ImageId, Mapping, ProcessId, Record, Settings, ThreadId};
use crate::tables::Tables;
use crate::tag;

impl Decoder {
    /// Reads a record of the tag, whose numbers are all in one column.
    pub(super) fn other(&mut self, tag: u8, tables: &Tables) -> Result<Step, Damage> {
        match tag {
            tag::SETTINGS => {
                let settings = self.settings()?;
                self.deliver(Record::Settings(settings))
            }
            tag::HOST => {
                let host = self.host()?;
                self.deliver(Record::Host(host))
            }
            tag::LOST | tag::THROTTLE | tag::GAP | tag::PAUSE | tag::COUNTER | tag::END => {
                let fact = self.fact(tag)?;
                self.deliver(fact)
            }
            tag::GENERATED_NAME | tag::SYMBOL => self.named(tag, tables),
            tag::THREAD_NAME | tag::THREAD_EXIT => self.of_thread(tag, tables),
            _ if tag == 0 || tag > tag::END => Err(Damage::BadTag),
            _ => self.of_process(tag, tables),
        }
    }

    fn settings(&mut self) -> Result<Settings<'static>, Damage> {
        let event = self.string()?;
        let rate_hz = self.number32()?;
        let stack_size_bytes = self.number32()?;
        let flags = self.number()?;
        if flags > 3 {
            return Err(Damage::BadTag);
        }
        Ok(Settings {
            event,
            rate_hz,
            stack_size_bytes,
            kernel_frames: flags & 1 != 0,
            follows_children: flags & 2 != 0,
            start_monotonic_ns: self.time()?,
            start_realtime_ns: self.number()?,
        })
    }

    fn host(&mut self) -> Result<Host<'static>, Damage> {
        Ok(Host {
            architecture: self.string()?,
            kernel_release: self.string()?,
            boot_id: self.string()?,
            kernel_build_id: self.string()?,
            cpu_model: self.string()?,
            online_cpus: self.number32()?,
        })
    }

    fn fact(&mut self, tag: u8) -> Result<Record<'static>, Damage> {
        if tag == tag::COUNTER {
            return Ok(Record::Counter { name: self.string()?, value: self.number()? });
        }
        let time_ns = self.time()?;
        Ok(match tag {
            tag::LOST => Record::Lost { time_ns, cpu: self.cpu()?, events: self.number()? },
            tag::THROTTLE => {
                Record::Throttle { time_ns, cpu: self.cpu()?, throttled: self.flag()? }
            }
            tag::GAP => Record::Gap { start_ns: time_ns, end_ns: self.time()? },
            tag::PAUSE => Record::Pause { time_ns, paused: self.flag()? },
            _ => Record::End { time_ns },
        })
    }

    fn cpu(&mut self) -> Result<Option<u32>, Damage> {
        match self.number()? {
            0 => Ok(None),
            cpu => u32::try_from(cpu - 1).map(Some).map_err(|_| Damage::BadNumber),
        }
    }

    fn named(&mut self, tag: u8, tables: &Tables) -> Result<Step, Damage> {
        let time_ns = if tag == tag::GENERATED_NAME { self.time()? } else { 0 };
        let image = self.number()?;
        let image = known(image, self.counts.images)?;
        let last = *self.predictor.address(image);
        let address = self.read(columns::NUMBERS, |cursor| cursor.difference(last))?;
        *self.predictor.address(image) = address;
        let size = self.number()?;
        let name = self.string()?;
        let image = ImageId(image);
        let record = match tag {
            tag::GENERATED_NAME => Record::GeneratedName { image, time_ns, address, size, name },
            _ => Record::Symbol { image, address, size, name },
        };
        self.deliver_if(tables.image(image).is_some(), record)
    }

    fn of_thread(&mut self, tag: u8, tables: &Tables) -> Result<Step, Damage> {
        let time_ns = self.time()?;
        let ago = self.number()?;
        let thread = ThreadId(from_newest(self.counts.threads, ago)?);
        let record = match tag {
            tag::THREAD_NAME => Record::ThreadName { thread, time_ns, name: self.string()? },
            _ => Record::ThreadExit { thread, time_ns },
        };
        self.deliver_if(tables.thread(thread).is_some(), record)
    }

    fn of_process(&mut self, tag: u8, tables: &Tables) -> Result<Step, Damage> {
        let time_ns = self.time()?;
        let process = self.process_ago()?;
        let mut is_known = tables.process(process).is_some();
        let record = match tag {
            tag::COMM => Record::Comm { process, time_ns, comm: self.string()? },
            tag::COMMAND_LINE => {
                Record::CommandLine { process, time_ns, arguments: self.string()? }
            }
            tag::FORK => {
                let ago = self.number32()?;
                let parent = self.counts.processes.checked_sub(ago).filter(|_| ago > 0);
                let parent = ProcessId(parent.ok_or(Damage::ForwardReference)?);
                is_known &= tables.process(parent).is_some();
                Record::Fork { parent, child: process, time_ns }
            }
            tag::EXEC => Record::Exec { process, time_ns },
            tag::PROCESS_EXIT => Record::ProcessExit { process, time_ns },
            tag::MAPPING => {
                let (start_avma, end_avma) = self.range()?;
                let file_offset = self.number()?;
                let image = self.number()?;
                let image = ImageId(known(image, self.counts.images)?);
                is_known &= tables.image(image).is_some();
                Record::Mapping(Mapping {
                    process,
                    time_ns,
                    start_avma,
                    end_avma,
                    file_offset,
                    image,
                })
            }
            tag::UNMAPPING => {
                let (start_avma, end_avma) = self.range()?;
                Record::Unmapping { process, time_ns, start_avma, end_avma }
            }
            tag::ANNOTATION => {
                Record::Annotation { process, time_ns, key: self.string()?, value: self.string()? }
            }
            _ => return Err(Damage::BadTag),
        };
        self.deliver_if(is_known, record)
    }

    fn range(&mut self) -> Result<(u64, u64), Damage> {
        let from = self.predictor.mapping_avma;
        let start = self.read(columns::NUMBERS, |cursor| cursor.difference(from))?;
        let len = self.number()?;
        let end = start.checked_add(len).filter(|_| len > 0).ok_or(Damage::BadRecord)?;
        self.predictor.mapping_avma = end;
        Ok((start, end))
    }
}
