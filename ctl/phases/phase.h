// A verb's phases: named steps, in order, that can be run alone and left out. Names of sub-phases have a slash,
// "certs/apiserver"; the name before it stands for all of them.
#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/phases/phase_log.h"
#include "lib/base/error.h"

namespace keelson::ctl {

template <typename Run>
struct Phase {
  std::string_view name, what;
  Result<> (*run)(Run&);
};

// The indexes of the phases to run, in order: `only` and what is below it (empty: all), without `skipped`. kInvalid:
// a name that none has.
Result<std::vector<size_t>> SelectPhases(const std::vector<std::string_view>& names, const std::string& only,
                                         const std::vector<std::string>& skipped);

// One of them, whose error names it. `Run` has log(), which may be null.
template <typename Run>
Result<> RunPhase(const Phase<Run>& phase, Run& run) {
  if (run.log()) run.log()->Begin(phase.name);
  Result<> done = phase.run(run);
  if (run.log()) run.log()->End(done);
  if (!done) return done.error().Wrap("error execution phase " + std::string(phase.name));
  return {};
}

template <typename Run, size_t N>
Result<> RunPhases(const Phase<Run> (&table)[N], const std::string& only,
                   const std::vector<std::string>& skipped, Run& run) {
  std::vector<std::string_view> names;
  for (const Phase<Run>& phase : table) names.push_back(phase.name);
  KEELSON_ASSIGN_OR_RETURN(const std::vector<size_t> chosen, SelectPhases(names, only, skipped));
  for (size_t index : chosen) {
    KEELSON_RETURN_IF_ERROR(RunPhase(table[index], run));
  }
  return {};
}

// Lines for help: each phase and what it does.
template <typename Run, size_t N>
std::string DescribePhases(const Phase<Run> (&table)[N]) {
  std::string out;
  for (const Phase<Run>& phase : table) {
    std::string line = "  " + std::string(phase.name);
    line.resize(std::max<size_t>(line.size() + 1, 44), ' ');
    out += line + std::string(phase.what) + "\n";
  }
  return out;
}

}  // namespace keelson::ctl
