// Messages of the parser, its limits, and field names.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "lib/cel/syntax/escaping.h"
#include "lib/cel/syntax/parser.h"

namespace keelson::cel {
namespace {

std::string Problems(std::string_view expression, const SyntaxOptions& options = {}) {
  std::vector<Issue> issues;
  Parse(expression, options, issues);
  return DisplayIssues(expression, issues);
}

constexpr char kStart[] =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "
    "IDENTIFIER}";

// The line that names the problem, without the expression and its marker.
std::vector<std::string> Lines(const std::string& shown) {
  std::vector<std::string> out;
  for (size_t at = 0; (at = shown.find("ERROR: <input>:", at)) != std::string::npos;) {
    size_t end = shown.find('\n', at);
    out.push_back(shown.substr(at + 15, end == std::string::npos ? end : end - at - 15));
    at = end == std::string::npos ? shown.size() : end;
  }
  return out;
}

TEST(Parser, WordsProblemsAsUpstream) {
  const std::string start = kStart;
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {"1 + +",
       {"1:5: Syntax error: mismatched input '+' expecting " + start,
        "1:6: Syntax error: mismatched input '<EOF>' expecting " + start}},
      {"1 + $",
       {"1:5: Syntax error: token recognition error at: '$'",
        "1:6: Syntax error: mismatched input '<EOF>' expecting " + start}},
      {"*@a | b",
       {"1:1: Syntax error: extraneous input '*' expecting " + start,
        "1:2: Syntax error: token recognition error at: '@'",
        "1:5: Syntax error: token recognition error at: '| '",
        "1:7: Syntax error: extraneous input 'b' expecting <EOF>"}},
      {"a | b",
       {"1:3: Syntax error: token recognition error at: '| '",
        "1:5: Syntax error: extraneous input 'b' expecting <EOF>"}},
      {"?",
       {"1:1: Syntax error: mismatched input '?' expecting " + start,
        "1:2: Syntax error: mismatched input '<EOF>' expecting " + start}},
      {"1 + 2\n3 +", {"2:1: Syntax error: mismatched input '3' expecting <EOF>"}},
      {"....", {"1:2: Syntax error: no viable alternative at input '..'"}},
      {"{\"a\": 1}.\"a\"", {"1:10: Syntax error: no viable alternative at input '.\"a\"'"}},
      {"a.true", {"1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER"}},
      {"\"\\xFh\"",
       {"1:1: Syntax error: token recognition error at: '\"\\xFh'",
        "1:6: Syntax error: token recognition error at: '\"'",
        "1:7: Syntax error: mismatched input '<EOF>' expecting " + start}},
      {"(1 + 2", {"1:7: Syntax error: missing ')' at '<EOF>'"}},
      {"while", {"1:1: reserved identifier: while"}},
      {"namespace == 'x'", {"1:1: reserved identifier: namespace"}},
      {"9223372036854775808", {"1:1: invalid int literal"}},
      {"-9223372036854775808", {}},
      {"18446744073709551616u", {"1:1: invalid uint literal"}},
      {"1e999", {"1:1: invalid double literal"}},
      {"'\\ud800'", {"1:1: unable to unescape string"}},
      {"b'\\u0041'", {"1:1: unable to unescape string"}},
      {"has(x)", {"1:5: invalid argument to has() macro"}},
      {"[].all(1, true)", {"1:8: argument must be a simple name"}},
      {"[].map(1, true)", {"1:8: argument is not an identifier"}},
      {"[].all(x, x, true)", {"1:11: duplicate variable name: x"}},
      {"a.optMap(1, 2)", {"1:10: optMap() variable name must be a simple identifier"}},
      {"a.`b`", {"1:3: unsupported syntax: '`'"}},
      {"1.sortBy(x, x)",
       {"1:1: sortBy can only be applied to a list, identifier, comprehension, call or select expression"}},
  };
  for (const auto& [expression, lines] : cases) EXPECT_EQ(Lines(Problems(expression)), lines) << expression;
}

TEST(Parser, PlacesMarkersByCharacters) {
  EXPECT_EQ(Problems("'😁' + 😁"),
            "ERROR: <input>:1:7: Syntax error: token recognition error at: '😁'\n | '😁' + 😁\n | .．....＾\n"
            "ERROR: <input>:1:8: Syntax error: mismatched input '<EOF>' expecting " +
                std::string(kStart) + "\n | '😁' + 😁\n | .．....．^");
  EXPECT_EQ(Problems("1 +\t\n\t)"), "ERROR: <input>:2:2: Syntax error: mismatched input ')' expecting " +
                                        std::string(kStart) + "\n |  )\n | .^");
}

TEST(Parser, KnowsOldSyntaxOnly) {
  SyntaxOptions old;
  old.optional_syntax = old.two_variables = old.sort_by = false;
  EXPECT_EQ(Lines(Problems("a.?b", old)), std::vector<std::string>{"1:2: unsupported syntax '.?'"});
  EXPECT_EQ(Lines(Problems("a[?b]", old)), std::vector<std::string>{"1:2: unsupported syntax '[?'"});
  EXPECT_EQ(Lines(Problems("[?a]", old)), std::vector<std::string>{"1:2: unsupported syntax '?'"});
  EXPECT_EQ(Problems("a.all(k, v, true)", old), "") << "a call of an unknown function, for the checker";
  SyntaxOptions escaped;
  escaped.escaped_identifiers = true;
  EXPECT_EQ(Problems("a.`b-c/d` == 1", escaped), "");
}

TEST(Parser, StopsAtItsLimits) {
  auto repeat = [](std::string_view text, size_t times) {
    std::string out;
    for (size_t i = 0; i < times; ++i) out += text;
    return out;
  };
  const std::string deep[] = {repeat("(", 300) + "1" + repeat(")", 300),
                              repeat("[", 50000),
                              repeat("a.b", 0) + "a" + repeat(".b", 300),
                              "1" + repeat(" + 1", 300),
                              "1" + repeat(" == 1", 300),
                              "a" + repeat("[0]", 300),
                              repeat("{1:", 30000),
                              repeat("true ? 1 : ", 300) + "1",
                              "a" + repeat(".f(0)", 300)};
  for (const std::string& expression : deep) {
    EXPECT_NE(Problems(expression).find("ERROR: <input>:-1:0: expression recursion limit exceeded: 250"),
              std::string::npos)
        << expression.substr(0, 20);
  }
  EXPECT_EQ(Problems(repeat("a", 100'001)),
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000");
  EXPECT_EQ(Problems("true" + repeat(" && true", 10'000)), "") << "chains of && and || are balanced";
  EXPECT_EQ(Problems(repeat("!", 90'001) + "true"), "");
}

TEST(Escaping, IsReversible) {
  const std::pair<const char*, const char*> cases[] = {{"namespace", "__namespace__"},
                                                       {"a-b", "a__dash__b"},
                                                       {"a.b", "a__dot__b"},
                                                       {"a/b", "a__slash__b"},
                                                       {"a__b", "a__underscores__b"},
                                                       {"self", "self"},
                                                       {"x_y", "x_y"},
                                                       {"___", "__underscores___"},
                                                       {"int", "int"}};
  for (const auto& [name, escaped] : cases) {
    EXPECT_EQ(EscapeFieldName(name), escaped);
    EXPECT_EQ(UnescapeFieldName(escaped), name);
  }
  for (const char* name : {"", "1a", "a b", "ä", "a$b"}) EXPECT_FALSE(EscapeFieldName(name)) << name;
  for (const char* name : {"__unknown__", "a__namespace__b"}) EXPECT_FALSE(UnescapeFieldName(name)) << name;
}

}  // namespace
}  // namespace keelson::cel
