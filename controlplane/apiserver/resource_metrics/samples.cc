#include "controlplane/apiserver/resource_metrics/samples.h"

#include <charconv>
#include <cmath>

namespace keelson::apiserver {
namespace {

// The minimal interval of a rate.
constexpr std::chrono::seconds kMinFreshWindow{10};
// Larger values are invalid, and would overflow.
constexpr double kLargest = 9e18;

struct Line {
  std::string_view name;
  std::string ns, pod, container;
  double value = 0;
  std::optional<WallTime> time;
};

void Skip(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

// A quoted string with escapes.
std::optional<std::string> Quoted(std::string_view& text) {
  if (text.empty() || text.front() != '"') return std::nullopt;
  std::string out;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return out;
    }
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return std::nullopt;
}

bool ReadLabels(std::string_view& text, Line& line) {
  while (!text.empty() && text.front() != '}') {
    size_t equals = text.find('=');
    if (equals == std::string_view::npos) return false;
    std::string_view name = text.substr(0, equals);
    text.remove_prefix(equals + 1);
    std::optional<std::string> value = Quoted(text);
    if (!value) return false;
    if (name == "namespace") line.ns = std::move(*value);
    if (name == "pod") line.pod = std::move(*value);
    if (name == "container") line.container = std::move(*value);
    if (!text.empty() && text.front() == ',') text.remove_prefix(1);
    Skip(text);
  }
  if (text.empty()) return false;
  text.remove_prefix(1);
  return true;
}

// name{label="value",...} value [milliseconds]
std::optional<Line> ReadLine(std::string_view text) {
  Line line;
  size_t end = text.find_first_of("{ ");
  if (end == std::string_view::npos || text.front() == '#') return std::nullopt;
  line.name = text.substr(0, end);
  text.remove_prefix(end);
  if (text.front() == '{') {
    text.remove_prefix(1);
    if (!ReadLabels(text, line)) return std::nullopt;
  }
  Skip(text);
  auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), line.value);
  if (problem != std::errc() || !(line.value >= 0 && line.value < kLargest)) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  Skip(text);
  int64_t millis = 0;
  std::from_chars(text.data(), text.data() + text.size(), millis);
  constexpr int64_t kLatest = 1LL << 43;  // more than two centuries after the epoch
  if (millis > 0 && millis < kLatest) line.time = WallTime(std::chrono::milliseconds(millis));
  return line;
}

// A point under construction.
struct Draft {
  UsagePoint point;
  bool cpu = false, memory = false;
};

void SetCpu(const Line& line, WallTime now, Draft& draft) {
  draft.cpu = true;
  draft.point.cpu_seconds = line.value;
  draft.point.time = line.time.value_or(now);
}
void SetMemory(const Line& line, Draft& draft) {
  draft.memory = true;
  draft.point.memory_bytes = static_cast<int64_t>(line.value);
}

// The start of the rate that ends at `point`.
std::optional<UsagePoint> Before(const UsagePoint& point, const UsageTrack* known,
                                 std::chrono::nanoseconds period) {
  const auto age = point.time - point.start;
  if (age >= kMinFreshWindow && age < period) return UsagePoint{point.start, point.start, 0, 0};
  if (!known || point.start >= known->last.time) return std::nullopt;
  if (point.time > known->last.time) return known->last;
  // The kubelet has not sampled again.
  if (known->before && known->before->time < point.time) return known->before;
  return std::nullopt;
}

}  // namespace

Result<UsageSample> ParseResourceMetrics(std::string_view text, WallTime now) {
  Draft node;
  ByContainer<Draft> pods;
  auto container = [&pods](const Line& line) -> Draft& {
    return pods[line.ns + "/" + line.pod][line.container];
  };
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::optional<Line> line = end == 0 ? std::nullopt : ReadLine(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line) continue;
    if (line->name == "node_cpu_usage_seconds_total") {
      SetCpu(*line, now, node);
    } else if (line->name == "node_memory_working_set_bytes") {
      SetMemory(*line, node);
    } else if (line->pod.empty() || line->container.empty()) {
      continue;
    } else if (line->name == "container_cpu_usage_seconds_total") {
      SetCpu(*line, now, container(*line));
    } else if (line->name == "container_memory_working_set_bytes") {
      SetMemory(*line, container(*line));
    } else if (line->name == "container_start_time_seconds") {
      container(*line).point.start =
          WallTime(std::chrono::nanoseconds(static_cast<int64_t>(std::min(line->value, 9e9) * 1e9)));
    }
  }
  if (!node.cpu || !node.memory) {
    return Error(Code::kInternal, "no CPU or no memory of the node in what it measured");
  }
  UsageSample sample{node.point, {}};
  for (auto& [pod, containers] : pods) {
    for (auto& [name, draft] : containers) {
      if (draft.cpu && draft.memory) sample.pods[pod][name] = draft.point;
    }
  }
  return sample;
}

NodeUsage Advance(const NodeUsage* known, UsageSample sample, std::chrono::nanoseconds period) {
  NodeUsage out;
  out.node.last = sample.node;
  out.node.before = Before(sample.node, known ? &known->node : nullptr, period);
  for (const auto& [pod, containers] : sample.pods) {
    for (const auto& [name, point] : containers) {
      const UsageTrack* track = nullptr;
      if (known) {
        auto old_pod = known->pods.find(pod);
        if (old_pod != known->pods.end()) {
          auto old = old_pod->second.find(name);
          if (old != old_pod->second.end()) track = &old->second;
        }
      }
      out.pods[pod][name] = {point, Before(point, track, period)};
    }
  }
  return out;
}

std::optional<Usage> UsageOf(const UsageTrack& track) {
  if (!track.before) return std::nullopt;
  const std::chrono::nanoseconds window = track.last.time - track.before->time;
  const double used = track.last.cpu_seconds - track.before->cpu_seconds;
  // A counter that decreased belongs to a new container or boot.
  if (window.count() <= 0 || used < 0) return std::nullopt;
  const double rate = used / std::chrono::duration<double>(window).count() * 1e9;
  if (rate > kLargest) return std::nullopt;
  return Usage{track.last.time, window, std::llround(rate), track.last.memory_bytes};
}

}  // namespace keelson::apiserver
