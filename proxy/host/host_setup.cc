#include "proxy/host/host_setup.h"

#include <charconv>
#include <fstream>
#include <thread>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/linux/sysctl.h"

namespace keelson::proxy {
namespace {

constexpr char kHashSize[] = "/sys/module/nf_conntrack/parameters/hashsize";

int Number(const std::string& text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void Set(const char* key, int64_t value) {
  if (Result<> set = linux::EnsureSysctl(key, std::to_string(value)); !set) {
    log::Warn("Cannot set a kernel parameter", {{"key", key}, {"value", value}, {"err", set.error()}});
  }
}

void SetTime(const char* key, std::chrono::seconds time) {
  if (time.count() > 0) Set(key, time.count());
}

void RaiseMax(int wanted) {
  Result<std::string> now = linux::ReadSysctl("net/netfilter/nf_conntrack_max");
  if (!now || Number(*now) >= wanted) return;
  Set("net/netfilter/nf_conntrack_max", wanted);
  // Chains of four are what the kernel itself takes for good.
  Result<std::string> buckets = ReadFile(kHashSize);
  if (!buckets || Number(*buckets) >= wanted / 4) return;
  std::ofstream out(kHashSize);
  out << wanted / 4;
  if (!out.flush()) log::Warn("Cannot enlarge the table of connections", {{"buckets", wanted / 4}});
}

}  // namespace

int WantedConntrackMax(const ConntrackLimits& limits, int cores) {
  return limits.max_per_core > 0 ? std::max(limits.max_per_core * cores, limits.min) : 0;
}

void SetConntrackLimits(const ConntrackLimits& limits) {
  int max = WantedConntrackMax(limits, static_cast<int>(std::thread::hardware_concurrency()));
  if (max > 0) RaiseMax(max);
  SetTime("net/netfilter/nf_conntrack_tcp_timeout_established", limits.tcp_established);
  SetTime("net/netfilter/nf_conntrack_tcp_timeout_close_wait", limits.tcp_close_wait);
  if (limits.tcp_be_liberal) Set("net/netfilter/nf_conntrack_tcp_be_liberal", 1);
  SetTime("net/netfilter/nf_conntrack_udp_timeout", limits.udp);
  SetTime("net/netfilter/nf_conntrack_udp_timeout_stream", limits.udp_stream);
}

void EnsureForwarding() {
  if (Result<> on = linux::EnsureSysctl("net/ipv4/ip_forward", "1"); !on) {
    log::Warn("Cannot switch IPv4 forwarding on", {{"err", on.error()}});
  }
}

void SetOomScore(int score) {
  std::ofstream out("/proc/self/oom_score_adj");
  out << score;
  if (!out.flush()) log::Info("Cannot set this process's OOM score", {{"score", score}});
}

}  // namespace keelson::proxy
