#include "ctl/cri/stats.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "ctl/cri/text.h"

namespace keelson::ctl {
namespace {

Result<std::string> CpuPercent(const cri::CpuUsage& before, const cri::CpuUsage& now) {
  const uint64_t used = now.usage_core_nano_seconds().value();
  double percent = 0;
  if (used != 0) {
    const int64_t time = now.timestamp() - before.timestamp();
    if (time == 0) return Error(Code::kUnavailable, "cpu stat is not updated during sample");
    const double more =
        static_cast<double>(used) - static_cast<double>(before.usage_core_nano_seconds().value());
    percent = more / static_cast<double>(time) * 100;
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", percent);
  return std::string(text);
}

std::string Size(const cri::UInt64Value& bytes) { return HumanSize(static_cast<double>(bytes.value())); }

template <typename Reply>
void SortById(Reply& reply) {
  auto& all = *reply.mutable_stats();
  std::sort(all.pointer_begin(), all.pointer_end(),
            [](const auto* a, const auto* b) { return a->attributes().id() < b->attributes().id(); });
}

template <typename Reply>
auto ById(const Reply& reply) {
  std::map<std::string, decltype(&reply.stats(0))> out;
  for (const auto& one : reply.stats()) out[one.attributes().id()] = &one;
  return out;
}

}  // namespace

void SortStats(cri::ListContainerStatsResponse& stats) { SortById(stats); }
void SortStats(cri::ListPodSandboxStatsResponse& stats) { SortById(stats); }

Result<std::string> ContainerStatsTable(const cri::ListContainerStatsResponse& before,
                                        const cri::ListContainerStatsResponse& now, bool all) {
  const auto old = ById(before);
  std::vector<std::vector<std::string>> rows = {{"CONTAINER", "NAME", "CPU %", "MEM", "DISK", "INODES"}};
  for (const cri::ContainerStats& one : now.stats()) {
    const bool idle =
        one.cpu().usage_core_nano_seconds().value() == 0 && one.memory().working_set_bytes().value() == 0;
    const auto was = old.find(one.attributes().id());
    if ((idle && !all) || was == old.end()) continue;
    KEELSON_ASSIGN_OR_RETURN(const std::string cpu, CpuPercent(was->second->cpu(), one.cpu()));
    rows.push_back({TruncatedId(one.attributes().id()), one.attributes().metadata().name(), cpu,
                    Size(one.memory().working_set_bytes()), Size(one.writable_layer().used_bytes()),
                    std::to_string(one.writable_layer().inodes_used().value())});
  }
  return CriTable(rows);
}

Result<std::string> PodStatsTable(const cri::ListPodSandboxStatsResponse& before,
                                  const cri::ListPodSandboxStatsResponse& now) {
  const auto old = ById(before);
  std::vector<std::vector<std::string>> rows = {{"POD", "POD ID", "CPU %", "MEM"}};
  for (const cri::PodSandboxStats& one : now.stats()) {
    const cri::LinuxPodSandboxStats& usage = one.linux();
    const bool idle =
        usage.cpu().usage_core_nano_seconds().value() == 0 && usage.memory().working_set_bytes().value() == 0;
    const auto was = old.find(one.attributes().id());
    if (idle || was == old.end()) continue;
    KEELSON_ASSIGN_OR_RETURN(const std::string cpu, CpuPercent(was->second->linux().cpu(), usage.cpu()));
    rows.push_back({one.attributes().metadata().name(), TruncatedId(one.attributes().id()), cpu,
                    Size(usage.memory().working_set_bytes())});
  }
  return CriTable(rows);
}

}  // namespace keelson::ctl
