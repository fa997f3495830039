//! What the supervisor says: addresses and routes, what predecessors had learnt, operators' questions.

use crate::config::Config;
use crate::counters::Counter;
use crate::engine::{Ip, Out};
use crate::learners;
use crate::neighbour::NEIGHBOURS;
use crate::pending::ToPeer;
use crate::route::Routes;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use eft_arena::docket::Note;
use eft_base::errno::ENETUNREACH;
use eft_component::{Answer, Configure, Context};

const KEY: &str = "ip";

impl Ip {
    pub(crate) fn hear(&mut self, cx: &mut Context, Configure { key, value }: Configure, out: &mut Out) {
        cx.add(Counter::Blamed, self.docket.take_blamed());
        if !self.enter(cx, Note::setting(&key, &value)) {
            return self.leave_out(cx, key, out);
        }
        if key == KEY {
            self.configure(cx, &value, out);
        } else if key == learners::KNOWN {
            self.autoconf.remember(&value);
        } else if key == learners::IDENTITY {
            self.autoconf.set_identity(&value);
        } else if key == learners::RELEASE {
            self.release_leases(cx, out);
        } else if key.starts_with(NEIGHBOURS) {
            self.show_neighbours(cx.now, key, out);
        }
    }

    /// A setting that has killed two predecessors takes no effect, and who asks gets an empty answer.
    fn leave_out(&mut self, cx: &Context, key: String, out: &mut Out) {
        if key == KEY {
            cx.count(Counter::ConfigRefused);
            self.complain("ip configuration: it has killed two predecessors".into());
        } else if key.starts_with(NEIGHBOURS) {
            out.push(ToPeer::Answer(Answer { key, value: Vec::new() }));
        }
    }

    fn configure(&mut self, cx: &mut Context, text: &[u8], out: &mut Out) {
        let config = match Config::parse(text) {
            Ok(config) => config,
            Err(e) => {
                cx.count(Counter::ConfigRefused);
                self.last_error = Some(format!("ip configuration: {e}"));
                return;
            }
        };
        self.last_error = None;
        self.lanes.expect(config.transports());
        let before = core::mem::replace(&mut self.routes, Routes::new(&config));
        for (n, link) in self.links.iter().enumerate() {
            if let Some(link) = link {
                self.routes.add_link_local(n as u8, link.mac);
            }
        }
        let interfaces: Vec<u8> = self.routes.interfaces().collect();
        for n in 0..self.links.len() as u8 {
            if !interfaces.contains(&n) {
                for id in self.neighbours.forget(n) {
                    self.finish(id, ENETUNREACH, out);
                }
            }
        }
        for n in interfaces {
            if self.link(n).is_some_and(|l| l.up) {
                self.join_own_groups(cx.now, n);
                let new = self.routes.new_addresses(n, &before);
                self.announce(cx, n, new, out);
            }
        }
        for (mac, waiting) in self.neighbours.configure(cx.now, config.neighbours()) {
            self.release_waiting(cx, waiting, mac, out);
        }
        self.configure_autoconf(cx, &config);
        self.gate.configured = true;
        self.open_gate(cx, out);
    }
}
