#include "lib/metrics/conformance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace keelson::metrics {
namespace {

constexpr std::string_view kKinds[] = {"counter", "gauge", "histogram", "summary", ""};

bool Covers(const Exception& exception, std::string_view name) {
  return exception.name.ends_with('_') ? name.starts_with(exception.name) : name == exception.name;
}

const Exception* Find(std::span<const Exception> exceptions, std::string_view name) {
  for (const Exception& one : exceptions) {
    if (Covers(one, name)) return &one;
  }
  return nullptr;
}

std::string Sorted(std::vector<std::string> labels) {
  std::sort(labels.begin(), labels.end());
  return fmt::format("{}", fmt::join(labels, ","));
}

// Bounds in the table have six significant digits.
bool SameBuckets(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::abs(x - y) <= 2e-5 * std::abs(x); });
}

void Compare(const KubernetesMetric& wanted, const Description& got, std::vector<std::string>& out) {
  const std::string_view kind = kKinds[static_cast<size_t>(wanted.kind)];
  if (!kind.empty() && kind != got.type) {
    out.push_back(fmt::format("{}: {} is a {}", wanted.name, got.type, kind));
  }
  if (const std::string labels = Sorted(got.labels); labels != wanted.labels) {
    out.push_back(fmt::format("{}: labels {{{}}} are {{{}}}", wanted.name, labels, wanted.labels));
  }
  if (const std::vector<double> bounds = BucketsOf(wanted);
      !bounds.empty() && !SameBuckets(bounds, got.bounds)) {
    out.push_back(fmt::format("{}: buckets {} are {}", wanted.name, fmt::join(got.bounds, " "),
                              fmt::join(bounds, " ")));
  }
  const std::string help = HelpWithStability(wanted.name, "");
  if (!got.help.starts_with(help.substr(0, help.find(']') + 1))) {
    out.push_back(fmt::format("{}: help \"{}\" has no {}", wanted.name, got.help, help));
  }
}

bool IsOwn(std::string_view name) {
  return name.starts_with("keelson_") || name.starts_with("process_") || name.starts_with("test_");
}

}  // namespace

std::vector<std::string> Differences(const Expectation& expected, const std::vector<Description>& served) {
  std::map<std::string_view, const Description*> by_name;
  for (const Description& one : served) by_name[one.name] = &one;
  std::vector<std::string> out;
  std::map<std::string_view, bool> needed;
  for (const Exception& one : expected.absent) needed[one.name] = false;
  for (const KubernetesMetric* wanted : MetricsOf(expected.component)) {
    if (wanted->path != expected.path) continue;
    const auto it = by_name.find(wanted->name);
    const Exception* absence = Find(expected.absent, wanted->name);
    if (absence) needed[absence->name] = true;
    if (it == by_name.end()) {
      if (!absence) out.push_back(fmt::format("{}: missing", wanted->name));
    } else if (absence) {
      out.push_back(fmt::format("{}: served, and listed as absent: {}", wanted->name, absence->reason));
    } else {
      Compare(*wanted, *it->second, out);
    }
  }
  for (const auto& [name, need] : needed) {
    if (!need) out.push_back(fmt::format("{}: listed as absent, and Kubernetes does not have it here", name));
  }
  for (const auto& [name, one] : by_name) {
    if (!FindKubernetesMetric(name) && !IsOwn(name) && !Find(expected.extra, name)) {
      out.push_back(fmt::format("{}: Kubernetes has no such metric", name));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace keelson::metrics
