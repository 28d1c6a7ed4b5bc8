// testdata/functions.txt against the libraries: every overload is there with its signature and version, and nothing more;
// each has an expression that calls it, and its outcome.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "lib/cel/check/checker.h"
#include "lib/cel/check/literals.h"
#include "lib/cel/env.h"
#include "lib/cel/library/authorizer.h"
#include "lib/cel/library/library.h"
#include "lib/cel/syntax/parser.h"

namespace keelson::cel {
namespace {

struct Row {
  int since;
  std::string name, receiver, args, result, overload, expression, outcome;
};

std::vector<Row> ReadRows() {
  std::ifstream file(KEELSON_TESTDATA "/functions.txt");
  std::vector<Row> out;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string> cells;
    std::istringstream stream(line + "\t");
    for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
    if (cells.size() != 8) ADD_FAILURE() << line;
    if (cells.size() == 8) {
      out.push_back(
          {std::stoi(cells[0]), cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7]});
    }
  }
  return out;
}

std::vector<FunctionRow> AllLibraries() {
  std::vector<FunctionRow> out;
  for (auto library : {StandardOperators,  StandardConversions, StandardTexts,
                       StandardTimes,      OptionalFunctions,   StringFunctions,
                       SetFunctions,       MapInsertFunctions,  ListFunctions,
                       UrlFunctions,       RegexFunctions,      AuthorizerFunctions,
                       QuantityFunctions,  IpFunctions,         CidrFunctions,
                       FormatFunctions,    SemverFunctions,     KubernetesListFunctions,
                       JsonPatchFunctions, DeviceFunctions}) {
    auto rows = library();
    out.insert(out.end(), rows.begin(), rows.end());
  }
  return out;
}

std::string Signature(int since, std::string_view name, std::string_view receiver, std::string_view args,
                      std::string_view result) {
  std::ostringstream out;
  out << since << " " << receiver << (receiver.empty() ? "" : ".") << name << "(" << args << ") -> "
      << result;
  return out.str();
}

TEST(Functions, HaveTheSignaturesAndVersionsOfUpstream) {
  std::map<std::string, std::string> expected, found;
  for (const Row& row : ReadRows()) {
    expected[row.overload] = Signature(row.since, row.name, row.receiver, row.args, row.result);
  }
  for (const FunctionRow& row : AllLibraries()) {
    found[std::string(row.overload)] = Signature(row.since, row.name, row.receiver, row.args, row.result);
  }
  for (const auto& [overload, signature] : expected) EXPECT_EQ(found[overload], signature) << overload;
  for (const auto& [overload, signature] : found) EXPECT_EQ(signature, expected[overload]) << overload;
}

// Allows get, knows no answer for the verb "fail", and repeats the question as its reason.
class Repeating : public Authorizer {
 public:
  AuthorizationAnswer Check(const AuthorizationQuestion& q) const override {
    std::string reason = q.verb + " " + (q.path.empty() ? q.group + "/" + q.resource : q.path);
    for (const auto& [word, value] :
         std::initializer_list<std::pair<const char*, std::string>>{{"/", q.subresource},
                                                                    {" in ", q.namespace_name},
                                                                    {" ", q.name},
                                                                    {" ", q.field_selector},
                                                                    {" ", q.label_selector}}) {
      if (!value.empty()) reason += word + value;
    }
    if (!q.service_account_name.empty()) {
      reason += " of " + q.service_account_namespace + "/" + q.service_account_name;
    }
    if (q.verb == "fail") return {false, true, {}, "no answer"};
    return {q.verb == "get", false, reason, {}};
  }
};

EnvOptions Options(int version) {
  EnvOptions options;
  options.version = version;
  options.variables = {{"authorizer", DeclType::Native(&types::kAuthorizer)}};
  options.json_patch = options.device_includes = options.bind = true;
  return options;
}

class FunctionCases : public testing::Test {
 protected:
  FunctionCases() {
    for (const FunctionRow& row : AllLibraries()) rows_.push_back(row);
    table_.Add(rows_, kStoredExpressions);
    declarations_.AddVariable("authorizer", &types::kAuthorizer);
  }

  std::set<std::string> OverloadsOf(const std::string& expression) {
    std::vector<Issue> issues;
    auto ast = Parse(expression, {}, issues);
    if (!issues.empty()) return {};
    auto checked = Check(*ast, table_, declarations_, {false}, issues);
    EXPECT_TRUE(issues.empty()) << DisplayIssues(expression, issues);
    std::set<std::string> out;
    for (const ExprInfo& info : checked->info) {
      for (const Overload* overload : info.overloads) out.insert(std::string(overload->row->overload));
    }
    return out;
  }

  std::vector<FunctionRow> rows_;
  FunctionTable table_;
  Declarations declarations_;
};

TEST_F(FunctionCases, EveryOverloadIsCalled) {
  EnvPtr env = Env::Make(Options(kStoredExpressions));
  Repeating authorizer;
  for (const Row& row : ReadRows()) {
    EXPECT_TRUE(OverloadsOf(row.expression).count(row.overload))
        << row.expression << " does not call " << row.overload;
    auto program = env->Compile(row.expression);
    ASSERT_TRUE(program) << program.error().message();
    Arena arena;
    Activation activation(*env);
    activation.Set("authorizer", AuthorizerVariable(authorizer, arena));
    auto value = (*program)->Evaluate(activation, arena);
    EXPECT_EQ(value ? ToText(*value) : value.error().message(), row.outcome) << row.expression;
  }
}

TEST_F(FunctionCases, OldEnvironmentsDoNotKnowThem) {
  for (const Row& row : ReadRows()) {
    if (row.since == 0 || row.name == "cel.@mapInsert") continue;
    EnvPtr before = Env::Make(Options(row.since - 1)), since = Env::Make(Options(row.since));
    auto unknown = before->Compile(row.expression), known = since->Compile(row.expression);
    bool needs_newer = !known && known.error().message().find("undeclared reference") != std::string::npos;
    EXPECT_TRUE(known || needs_newer) << row.expression << "\n" << known.error().message();
    // A test for a function may go by one that is older still.
    EXPECT_FALSE(unknown) << row.expression << " is known before 1." << row.since;
  }
}

TEST(EnvSet, KnowsNewFunctionsInStoredExpressionsFirst) {
  EnvOptions options;
  EnvSet set = EnvSet::Make(options);
  EXPECT_TRUE(set.new_expressions->Compile("lists.range(3).sum() == 3"));
  EXPECT_TRUE(set.stored_expressions->Compile("lists.range(3).sum() == 3"));
  options.version = 33;
  auto old = Env::Make(options)->Compile("lists.range(3).sum() == 3");
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().message(),
            "ERROR: <input>:1:1: undeclared reference to 'lists' (in container '')\n | lists.range(3).sum() "
            "== 3\n | ^\n"
            "ERROR: <input>:1:12: undeclared reference to 'range' (in container '')\n | lists.range(3).sum() "
            "== 3\n | ...........^");
}

}  // namespace
}  // namespace keelson::cel
