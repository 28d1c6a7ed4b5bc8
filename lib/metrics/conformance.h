// For tests: holds what a component serves to the metrics of Kubernetes 1.36. The table
// (kubernetes_metrics.h) is the expectation; what is missing on purpose is listed with its reason, so that a
// release of Kubernetes is a diff.
//
//   constexpr metrics::Exception kAbsent[] = {{"apiserver_egress_dialer_", "there is no egress selector"}};
//   EXPECT_THAT(metrics::Differences({metrics::Component::kApiserver, "", kAbsent}, metrics::Describe()),
//   IsEmpty());
//
// Describe() knows the families that have been made: a test runs what makes them first (or they are
// namespace-scope objects). Describe(text) is for pages of their own, such as /metrics/slis.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/metrics/kubernetes_metrics.h"
#include "lib/metrics/text.h"

namespace keelson::metrics {

struct Exception {
  std::string_view name;  // ending in '_': all that begin so
  std::string_view reason;
};

struct Expectation {
  Component component;
  std::string_view path{};  // empty: /metrics; else as the table has it: "/metrics/resource"
  std::span<const Exception> absent{};
  // Served though Kubernetes has none of the name. keelson_*, process_* and test_* need not be told.
  std::span<const Exception> extra{};
};

// One sentence a difference, sorted: missing, type, labels, buckets, stability, an absence that is served or
// that nothing needs, a name that Kubernetes does not have. Families of other components are no difference.
std::vector<std::string> Differences(const Expectation& expected, const std::vector<Description>& served);

}  // namespace keelson::metrics
