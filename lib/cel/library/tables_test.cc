// testdata/macros.txt, errors.txt and costs.txt: every form of each macro, every kind of error in its words, and what a call
// of each overload costs.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/cel/env.h"
#include "lib/cel/library/authorizer.h"

namespace keelson::cel {
namespace {

using Cells = std::vector<std::string>;

// The rows of a table, each with so many cells.
std::vector<Cells> ReadTable(const std::string& name, size_t cells) {
  std::ifstream file(std::string(KEELSON_TESTDATA "/") + name);
  std::vector<Cells> out;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    Cells row;
    for (const std::string_view cell : Split(line, '\t')) row.emplace_back(cell);
    EXPECT_EQ(row.size(), cells) << line;
    if (row.size() == cells) out.push_back(std::move(row));
  }
  EXPECT_FALSE(out.empty()) << name;
  return out;
}

std::string OnOneLine(std::string text) {
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    text.replace(at, 1, "\\n");
  }
  return text;
}

EnvPtr EnvOf(int version) {
  EnvOptions options;
  options.version = version;
  options.variables = {{"authorizer", DeclType::Native(&types::kAuthorizer)}};
  options.json_patch = options.device_includes = options.bind = true;
  return Env::Make(options);
}

class AllowsAll : public Authorizer {
 public:
  AuthorizationAnswer Check(const AuthorizationQuestion&) const override { return {true, false, "", ""}; }
};

struct Outcome {
  std::string text;
  uint64_t cost = 0;
  CostEstimate estimate;
};

Outcome OutcomeOf(const EnvPtr& env, const std::string& expression) {
  auto program = env->Compile(expression);
  if (!program) return {program.error().message(), 0, {}};
  Arena arena;
  AllowsAll authorizer;
  Activation activation(*env);
  activation.Set("authorizer", AuthorizerVariable(authorizer, arena));
  Outcome out;
  out.estimate = (*program)->estimate();
  auto value = (*program)->Evaluate(activation, arena, {}, &out.cost);
  out.text = value ? ToText(*value) : value.error().message();
  return out;
}

TEST(CelTables, EveryFormOfAMacro) {
  const EnvPtr newest = EnvOf(kStoredExpressions);
  std::set<std::string> forms;
  for (const Cells& row : ReadTable("macros.txt", 5)) {
    const int since = std::stoi(row[0]);
    const std::string& expression = row[3];
    EXPECT_TRUE(forms.insert(row[1] + "(" + row[2] + ")").second) << row[1] << " stands there twice";
    EXPECT_EQ(OutcomeOf(newest, expression).text, row[4]) << expression;
    EXPECT_EQ(OutcomeOf(EnvOf(since), expression).text, row[4]) << expression << " in 1." << since;
    if (since > 0) {
      EXPECT_FALSE(EnvOf(since - 1)->Compile(expression)) << expression << " is known before 1." << since;
    }
  }
}

TEST(CelTables, EveryKindOfError) {
  const EnvPtr env = EnvOf(kStoredExpressions);
  for (const Cells& row : ReadTable("errors.txt", 2)) {
    EXPECT_EQ(OnOneLine(OutcomeOf(env, row[0]).text), row[1]) << row[0];
  }
}

TEST(CelTables, TheCostOfEveryOverload) {
  const EnvPtr env = EnvOf(kStoredExpressions);
  std::map<std::string, Cells> costs;
  for (const Cells& row : ReadTable("costs.txt", 3)) costs[row[0]] = row;
  for (const Cells& row : ReadTable("functions.txt", 8)) {
    const std::string &overload = row[5], &expression = row[6];
    const Outcome outcome = OutcomeOf(env, expression);
    const Cells found = {overload, std::to_string(outcome.cost),
                         fmt::format("{}-{}", outcome.estimate.min, outcome.estimate.max)};
    EXPECT_EQ(found, costs[overload]) << expression;
    costs.erase(overload);
  }
  for (const auto& [overload, row] : costs) ADD_FAILURE() << overload << " is no overload";
}

}  // namespace
}  // namespace keelson::cel
