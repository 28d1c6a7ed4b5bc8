// What expressions cost: estimated when they are compiled, and counted when they run.
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "lib/cel/env.h"
#include "lib/cel/library/authorizer.h"
#include "lib/cel/values/json_view.h"

namespace keelson::cel {
namespace {

using Limit = std::optional<int64_t>;

DeclTypePtr Object() {
  return DeclType::Object("object", {{"required", "required", DeclType::String(), true, false},
                                     {"optional", "optional", DeclType::String(), false, false}});
}

struct EstimateCase {
  const char* name;
  DeclTypePtr (*type)(Limit limit);
  const char* rule;
  uint64_t unlimited, most;
  int64_t limit;
  uint64_t limited;
};

template <DeclTypePtr (*kElement)(bool)>
DeclTypePtr ListOf(Limit limit) {
  return DeclType::List(kElement(false), limit);
}
template <DeclTypePtr (*kElement)(bool)>
DeclTypePtr MapOf(Limit limit) {
  return DeclType::Map(kElement(false), limit);
}
DeclTypePtr Text(bool) { return DeclType::String(); }
DeclTypePtr IntOrText(bool) { return DeclType::IntOrString(); }
DeclTypePtr Numbers(bool) { return DeclType::List(DeclType::Double()); }
DeclTypePtr NumberMap(bool) { return DeclType::Map(DeclType::Double()); }
DeclTypePtr Objects(bool) { return Object(); }
DeclTypePtr LimitedText(Limit limit) { return DeclType::String({limit, {}}); }
DeclTypePtr LimitedBytes(Limit limit) { return DeclType::Bytes(limit); }

TEST(Estimate, IsUpstreams) {
  // The names are those of upstream's cases (apiextensions, TestCostEstimation).
  const EstimateCase cases[] = {
      {"number array with all", ListOf<DeclType::Double>, "self.all(x, true)", 4718591, 0, 10, 32},
      {"string array with all", ListOf<Text>, "self.all(x, true)", 3145727, 0, 20, 62},
      {"boolean array with all", ListOf<DeclType::Bool>, "self.all(x, true)", 1887437, 0, 5, 17},
      {"array of number arrays with all", ListOf<Numbers>, "self.all(x, true)", 3145727, 0, 100, 302},
      {"map of numbers with all", MapOf<DeclType::Double>, "self.all(x, true)", 1348169, 0, 10, 32},
      {"map of strings with all", MapOf<Text>, "self.all(x, true)", 1179647, 0, 3, 11},
      {"map of booleans with all", MapOf<DeclType::Bool>, "self.all(x, true)", 943718, 0, 100, 302},
      {"string with contains", LimitedText, "self.contains('test')", 314574, 0, 10, 5},
      {"string with startsWith", LimitedText, "self.startsWith('test')", 2, 0, 15, 2},
      {"concat string", LimitedText, "size(self + \"hello\") > size(\"hello\")", 314578, 0, 4, 7},
      {"index of array with numbers", ListOf<DeclType::Double>, "self[1] == 0.0", 2, 0, 5000, 2},
      {"index of array with strings", ListOf<Text>, "self[1] == self[1]", 314577, 0, 8, 314577},
      {"O(n^2) loop with numbers", ListOf<DeclType::Double>, "self.all(x, self.all(y, true))", 0,
       kEstimatedCostLimit, 10, 352},
      {"O(n^3) loop with numbers", ListOf<DeclType::Double>, "self.all(x, self.all(y, self.all(z, true)))", 0,
       kEstimatedCostLimit, 10, 3552},
      {"regex matches simple", LimitedText, "self.matches(\"x\")", 314574, 0, 50, 22},
      {"regex matches empty string", LimitedText, "\"\".matches(\"(((((((((())))))))))[0-9]\")", 7, 0, 10, 7},
      {"regex matches empty regex", LimitedText, "self.matches(\"\")", 1, 0, 100, 1},
      {"map of strings with value length", MapOf<Text>, "self.all(x, x.contains(self[x]))", 2752507, 0, 10,
       72},
      {"set string maxLength to zero", LimitedText, "self == \"x\"", 2, 0, 0, 1},
      {"set bytes maxLength to zero", LimitedBytes, "self == b\"x\"", 2, 0, 0, 1},
      {"set maxLength greater than estimated maxLength", ListOf<DeclType::Double>, "self.all(x, x == 0.0)",
       6291454, 0, 3 * 1024 * 2048, 25165826},
      {"int-or-string array with all", ListOf<IntOrText>, "self.all(x, true)", 4718591, 0, 10, 32},
      {"index of array with int-or-strings", ListOf<IntOrText>, "self[0] == 5", 3, 0, 10, 3},
      {"index of array of objects", ListOf<Objects>, "self[0] == null", 2, 0, 422, 2},
      {"array of number maps with all", ListOf<NumberMap>, "self.all(x, x.y == 25.2)", 6291452, 0, 12, 74},
      {"index of array of number maps", ListOf<NumberMap>, "self[0].x > 2.0", 4, 0, 3000, 4},
      {"duration array with all", ListOf<DeclType::Duration>, "self.all(x, true)", 2359295, 0, 5, 17},
      {"index of duration array", ListOf<DeclType::Duration>, "self[0].getHours() == 2", 4, 0, 525, 4},
      {"date array with all", ListOf<DeclType::Date>, "self.all(x, true)", 725936, 0, 15, 47},
      {"date-time array with all", ListOf<DeclType::DateTime>, "self.all(x, true)", 428963, 0, 25, 77},
      {"map of objects with all", MapOf<Objects>, "self.all(x, true)", 428963, 0, 20, 62},
      {"map of number maps with all", MapOf<NumberMap>, "self.all(x, true)", 1179647, 0, 10, 32},
  };
  for (const EstimateCase& c : cases) {
    auto estimate = [&](Limit limit) {
      EnvOptions options;
      options.variables = {{"self", c.type(limit)}};
      auto program = Env::Make(options)->Compile(c.rule);
      EXPECT_TRUE(program) << c.name << ": " << program.error().message();
      return program ? (*program)->estimate().max : 0;
    };
    if (c.most > 0) {
      EXPECT_GE(estimate({}), c.most) << c.name;
    } else {
      EXPECT_EQ(estimate({}), c.unlimited) << c.name;
    }
    EXPECT_EQ(estimate(c.limit), c.limited) << c.name;
  }
}

struct FixedAuthorizer : Authorizer {
  AuthorizationAnswer Check(const AuthorizationQuestion&) const override { return {true, false, "", ""}; }
};

class RunCosts : public testing::Test {
 protected:
  RunCosts() {
    EnvOptions options;
    options.variables = {{"self", DeclType::Dyn()}, {"authorizer", DeclType::Native(&types::kAuthorizer)}};
    options.version = kStoredExpressions;
    env_ = Env::Make(options);
  }

  Result<Value> Run(std::string_view expression, uint64_t& cost, const RunLimits& limits = {}) {
    auto program = env_->Compile(expression);
    if (!program) return program.error();
    programs_.push_back(*program);
    Activation activation(*env_);
    activation.Set("self", JsonValue(self_, nullptr, arena_));
    activation.Set("authorizer", AuthorizerVariable(authorizer_, arena_));
    return (*program)->Evaluate(activation, arena_, limits, &cost);
  }

  boost::json::value self_ = boost::json::parse(
      R"({"n": 3, "text": "abcdefghijklmnop", "items": [3, 1, 2], "words": ["aaaaaaaaaa", "b"], "map": {"a": 1}})");
  FixedAuthorizer authorizer_;
  EnvPtr env_;
  std::vector<std::shared_ptr<const Program>> programs_;
  Arena arena_;
};

TEST_F(RunCosts, FollowTheTable) {
  const struct {
    const char* expression;
    uint64_t cost;
  } cases[] = {
      {"1", 0},
      {"self.n", 2},
      {"has(self.n)", 1},
      {"self.n == 3", 3},
      {"self.n == 3 && self.n < 5", 6},
      {"self.n == 4 && self.n < 5", 3},
      {"true ? self.n : 1", 2},
      {"[self.n]", 12},
      {"{'a': self.n}", 32},
      {"self.items[0]", 3},
      {"dyn(self.n)", 3},
      {"'abcdefghijk'.startsWith('a')", 2},
      {"'abcdefghijk' == 'abcdefghijk'", 2},
      {"'abcdefghijk' + 'b'", 2},
      {"'abcdefghijk'.matches('abcde')", 4},
      {"'abcdefghijk'.contains('a')", 2},
      {"'abcdefghijk'.find('abcde')", 4},
      {"3 in self.items", 3},  // a list or a map: one
      {"3 in [1, self.n]", 14},
      {"self.map.all(k, k == 'a')", 8},
      {"self.items.all(x, x > 0)", 18},
      {"self.items.exists(x, x == 3)", 12},
      {"self.items.map(x, x)", 42},
      {"sets.contains([1, 2], [1])", 3},
      {"sets.equivalent([1, 2], [1])", 5},
      {"self.items.sort()", 31},
      {"self.words.sort()", 22},
      {"self.items.reverse()", 16},
      {"self.items.slice(0, 2)", 15},
      {"lists.range(5)", 16},
      {"self.items.sum()", 5},
      {"self.words.isSorted()", 3},
      {"'abcdefghijk'.lowerAscii()", 2},
      {"'abcdefghijk'.replace('a', 'b')", 3},
      {"self.words.join()", 5},
      {"quantity('1000000000000')", 2},
      {"quantity('1') == quantity('1')", 3},
      {"cidr('10.0.0.0/8').containsIP('10.0.0.1')", 3},
      {"cidr('10.0.0.0/8').containsCIDR('10.0.0.0/9')", 5},
      {"ip('10.0.0.1').family()", 2},
      {"format.dns1123Label().validate('abc')", 9},
      {"authorizer.path('/a').check('get')", 350002},
      {"authorizer.group('').resource('pods').labelSelector('ab')", 64},
      {"[1, 2, 3]", 0},
      {"duration('1h')", 0},
  };
  for (const auto& c : cases) {
    uint64_t cost = 0;
    auto value = Run(c.expression, cost);
    EXPECT_TRUE(value) << c.expression << ": " << (value ? "" : value.error().message());
    EXPECT_EQ(cost, c.cost) << c.expression;
  }
}

TEST_F(RunCosts, StopAnEvaluationAtItsLimit) {
  uint64_t cost = 0;
  for (const char* expression :
       {"lists.range(1000).all(x, lists.range(1000).all(y, true))",
        "lists.range(1000).all(x, lists.range(1000).all(y, true)) || true",
        "lists.range(100).exists(x, authorizer.path('/').check('get').allowed() && false)",
        "lists.range(2000000).size() > 0", "lists.range(900000).distinct().size() > 0"}) {
    auto value = Run(expression, cost);
    ASSERT_FALSE(value) << expression;
    EXPECT_EQ(value.error().message(), "operation cancelled: actual cost limit exceeded") << expression;
    EXPECT_GT(cost, kEvaluationCostLimit) << expression;
  }
}

TEST_F(RunCosts, LookAtTheDeadline) {
  uint64_t cost = 0;
  RunLimits limits;
  limits.deadline = std::chrono::steady_clock::now();
  auto value = Run("lists.range(1000).all(x, true) || true", cost, limits);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().message(), "operation interrupted");
  EXPECT_TRUE(Run("lists.range(50).all(x, true)", cost, limits)) << "fewer iterations than between looks";
}

TEST_F(RunCosts, CountDownABudget) {
  auto program = env_->Compile("lists.range(10).all(x, true)");
  ASSERT_TRUE(program);
  Activation activation(*env_);
  Budget budget(100);
  EXPECT_TRUE((*program)->Evaluate(activation, arena_, budget));
  EXPECT_EQ(budget.left(), 48U);
  EXPECT_TRUE((*program)->Evaluate(activation, arena_, budget)) << "what begins within the budget ends";
  EXPECT_TRUE(budget.exceeded());
  EXPECT_FALSE((*program)->Evaluate(activation, arena_, budget));
}

}  // namespace
}  // namespace keelson::cel
