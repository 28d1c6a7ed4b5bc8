// The text forms of metrics: what is made once in Prometheus' form 0.0.4 (Print()), read back and told in
// OpenMetrics' form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keelson::metrics {

// What a family is, without its values.
struct Description {
  std::string name, type;  // type: counter, gauge, histogram
  std::string help;
  std::vector<std::string> labels;  // without le
  std::vector<double> bounds;       // without +Inf
};

// Every family of this process that has been made, also those without a value yet; by name.
std::vector<Description> Describe();
// Of a text in Prometheus' form; labels are those that any of a family's samples has.
std::vector<Description> Describe(std::string_view text);

// A bound as Go spells it in `le`: 0.005, 1e+06, 1e-08.
std::string FormatBound(double bound);

// OpenMetrics 1.0.0 of a text in Prometheus' form 0.0.4. Names of samples stay what they are: a counter whose
// name has no _total is declared `unknown` there. No exemplars, no _created.
std::string ToOpenMetrics(std::string_view text);

struct TextForm {
  bool open_metrics = false;
  std::string content_type;
};
// As promhttp picks it by Accept; what asks for nothing that there is gets Prometheus' text.
TextForm NegotiateText(std::string_view accept);

}  // namespace keelson::metrics
