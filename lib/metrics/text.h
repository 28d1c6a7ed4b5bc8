// The text forms of metrics: parses Prometheus' form 0.0.4, which Print() makes, and converts it to
// OpenMetrics.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keelson::metrics {

// A family without its values.
struct Description {
  std::string name, type;  // type: counter, gauge, histogram
  std::string help;
  std::vector<std::string> labels;  // without le
  std::vector<double> bounds;       // without +Inf
};

// Every family that this process has made, even without a value yet; sorted by name.
std::vector<Description> Describe();
// The families in a text in Prometheus' form. Labels are all that any sample of the family has.
std::vector<Description> Describe(std::string_view text);

// A bound as Go spells it in `le`: 0.005, 1e+06, 1e-08.
std::string FormatBound(double bound);

// Converts a text in Prometheus' form 0.0.4 to OpenMetrics 1.0.0. Sample names stay: a counter whose name
// lacks _total is declared `unknown`. No exemplars, no _created.
std::string ToOpenMetrics(std::string_view text);

struct TextForm {
  bool open_metrics = false;
  std::string content_type;
};
// Picks the form by the Accept header, as promhttp does. Prometheus' text if the header accepts neither.
TextForm NegotiateText(std::string_view accept);

}  // namespace keelson::metrics
