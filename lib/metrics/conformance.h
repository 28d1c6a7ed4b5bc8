// For tests: compares the metrics that a component serves with those of Kubernetes 1.36. The table
// (kubernetes_metrics.h) is the expectation. Metrics that are missing on purpose are listed with their
// reason, so that a new release of Kubernetes shows up as a diff.
//
//   constexpr metrics::Exception kAbsent[] = {{"apiserver_egress_dialer_", "there is no egress selector"}};
//   EXPECT_THAT(metrics::Differences({metrics::Component::kApiserver, "", kAbsent}, metrics::Describe()),
//               IsEmpty());
//
// Describe() knows only families that exist: a test first runs the code that makes them (or they are
// namespace-scope objects). Describe(text) is for separate pages, such as /metrics/slis.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/metrics/kubernetes_metrics.h"
#include "lib/metrics/text.h"

namespace keelson::metrics {

struct Exception {
  std::string_view name;  // ending in '_': every name with this prefix
  std::string_view reason;
};

struct Expectation {
  Component component;
  std::string_view path{};  // empty: /metrics; else a path from the table: "/metrics/resource"
  std::span<const Exception> absent{};
  // Metrics served under a name that Kubernetes does not have. keelson_*, process_* and test_* need not be
  // listed.
  std::span<const Exception> extra{};
};

// The differences, sorted, one sentence each: a missing metric; another type, labels, buckets or stability;
// an absence that is served after all or matches nothing; a name that Kubernetes does not have. Families of
// other components are no difference.
std::vector<std::string> Differences(const Expectation& expected, const std::vector<Description>& served);

}  // namespace keelson::metrics
