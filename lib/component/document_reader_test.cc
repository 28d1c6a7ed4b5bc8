#include "lib/component/document_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keelson::component {

struct Taint {
  std::string key;
  int32_t seconds = 0;
  bool operator==(const Taint&) const = default;
};
void ReadFields(DocumentReader& in, Taint& out) {
  in.Read("key", out.key);
  in.Read("seconds", out.seconds);
}

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Config {
  bool enabled = false;
  int32_t port = 10250;
  int64_t most = 7;
  double qps = 1;
  std::string name = "n";
  milliseconds ttl{5};
  TimeOrDuration flush;
  QuantityText size;
  std::vector<std::string> list = {"x"};
  std::map<std::string, bool> gates;
  std::vector<Taint> taints;
};

// The problems of `text`, whose fields `read` reads.
DocumentProblems ProblemsOf(const std::string& text, TypeWords words,
                            const std::function<void(DocumentReader&)>& read) {
  DocumentProblems problems{.words = words, .kind = "Config"};
  const auto document = ParseDocument(text, problems);
  EXPECT_TRUE(document) << text;
  if (!document) return problems;
  {
    DocumentReader in(*document, problems);
    read(in);
  }
  return problems;
}

DocumentProblems Read(const std::string& text, Config& config, TypeWords words = TypeWords::kGoField) {
  return ProblemsOf(text, words, [&](DocumentReader& in) {
    in.Read("enabled", config.enabled);
    in.Read("server.port", config.port, Zero::kDefault);
    in.Read("server.most", config.most);
    in.Read("qps", config.qps);
    in.Read("name", config.name, Zero::kDefault);
    in.Read("auth.webhook.ttl", config.ttl);
    in.Read("flush", config.flush);
    in.Read("size", config.size);
    in.Read("list", config.list);
    in.Read("gates", config.gates);
    in.Read("taints", config.taints);
  });
}

TEST(DocumentReader, ReadsEachTypeInTheFormsThatItHas) {
  Config config;
  const auto problems = Read(R"(
enabled: true
server: {port: 0, most: 0}
qps: 7
name: ""
auth: {webhook: {ttl: 1m30s}}
flush: 5000000000
size: 64Ki
list: []
gates: {A: true}
taints: [{key: a, seconds: 3}, {}]
)",
                             config);
  EXPECT_THAT(problems.wrong, IsEmpty());
  EXPECT_TRUE(config.enabled);
  EXPECT_EQ(config.port, 10250);  // a zero of a value is its default
  EXPECT_EQ(config.most, 0);
  EXPECT_EQ(config.qps, 7);
  EXPECT_EQ(config.name, "n");
  EXPECT_EQ(config.ttl, seconds(90));
  EXPECT_EQ(config.flush.value, seconds(5));
  EXPECT_EQ(config.size.text, "64Ki");
  EXPECT_THAT(config.list, IsEmpty());
  EXPECT_THAT(config.gates, ElementsAre(std::pair("A", true)));
  EXPECT_EQ(config.taints, (std::vector<Taint>{{"a", 3}, {}}));
}

TEST(DocumentReader, NumbersAndTextStandForEachOtherOnlyWhereUpstreamHasIt) {
  const struct {
    const char *text, *wrong;
  } cases[] = {
      {"flush: 0", ""},
      {"flush: 5s", ""},
      {"flush: '0'", ""},
      {"flush: '5'", "flush: time: missing unit in duration \"5\""},
      {"flush: 1.5", "flush: invalid duration \"1.5E0\""},
      {"flush: true", "flush: invalid duration \"true\""},
      {"flush: {}", "flush: invalid duration \"{}\""},
      {"size: 65536", ""},
      {"size: many", "size: "},
      {"size: true", "cannot unmarshal bool into Go struct field Config.size of type resource.Quant"},
      {"auth: {webhook: {ttl: 5}}",
       "cannot unmarshal number 5 into Go struct field "
       "Config.auth.webhook.ttl of type string"}};
  for (const auto& c : cases) {
    Config config;
    const std::string wrong = Join(Read(c.text, config).wrong);
    EXPECT_EQ(wrong.empty(), *c.wrong == 0) << c.text << wrong;
    EXPECT_THAT(wrong, HasSubstr(c.wrong));
  }
}

TEST(DocumentReader, EveryMistakeIsReportedWithItsPath) {
  Config config;
  const auto problems =
      Read("server: {port: many, most: 99999999999999999999}\ntaints: [{}, {seconds: x}]\ngates: {A: 1}\n",
           config, TypeWords::kGoValue);
  EXPECT_THAT(problems.wrong,
              ElementsAre("server.port: json: cannot unmarshal string into a value of type int32",
                          HasSubstr("server.most: json: cannot unmarshal number"),
                          "gates.A: json: cannot unmarshal number 1 into a value of type bool",
                          "taints[1].seconds: json: cannot unmarshal string into a value of type int32"));
  EXPECT_EQ(config.port, 10250);
}

TEST(DocumentReader, UnknownFieldsAndSectionsAreFoundAtTheEnd) {
  int32_t port = 0;
  DocumentProblems problems =
      ProblemsOf("a: {b: 1, c: 2}\nd: 3\ne: 4\nd: 3\n", TypeWords::kGoField, [&](DocumentReader& in) {
        in.Read("a.b", port);
        in.Read("e.f", port);
      });
  EXPECT_THAT(problems.strict, ElementsAre(HasSubstr("line 4: key \"d\" already set in map"),
                                           "unknown field \"a.c\"", "unknown field \"d\""));
  EXPECT_THAT(problems.wrong, ElementsAre(HasSubstr("cannot unmarshal number 4 into Go struct field")));
  EXPECT_FALSE(TellProblems(problems));
  problems.wrong.clear();
  EXPECT_TRUE(TellProblems(problems));
  EXPECT_FALSE(RefuseProblems(problems));
}

TEST(DocumentReader, SectionsAreReadAlsoWhereTheyAreAbsent) {
  const auto read = [](DocumentReader& in) {
    in.Section("outer", [](DocumentReader& outer) {
      std::string name;
      outer.Read("name", name);
      if (name.empty()) outer.Problem("name", "Required value");
    });
    in.Object("absent", [](DocumentReader& absent) { absent.Problem("name", "Required value"); });
    in.List("items", [](DocumentReader& item) {
      int32_t port = 0;
      item.Read("port", port);
    });
  };
  EXPECT_THAT(ProblemsOf("{}", TypeWords::kMustBe, read).wrong, ElementsAre("outer.name: Required value"));
  EXPECT_THAT(
      ProblemsOf("{outer: {name: a}, items: [{port: 1}, {port: x}, 3]}", TypeWords::kMustBe, read).wrong,
      ElementsAre("items[1].port: must be a whole number of 32 bits", "items[2]: must be an object"));
  EXPECT_THAT(ProblemsOf("{outer: {name: a}, items: 7}", TypeWords::kInvalidValue, read).wrong,
              ElementsAre("items: Invalid value: must be a list"));
}

TEST(Document, AggregatesNameStrictProblemsFirst) {
  DocumentProblems problems;
  EXPECT_TRUE(RefuseAggregate(problems));
  problems.wrong = {"a: must be a list"};
  EXPECT_EQ(RefuseAggregate(problems).error().message(), "a: must be a list");
  problems.strict = {"unknown field \"b\""};
  EXPECT_EQ(RefuseAggregate(problems).error().message(),
            "[strict decoding error: unknown field \"b\", a: must be a list]");
}

TEST(Document, KindAndVersionAreChecked) {
  const DocumentType type{"Config", {"example.com/v1", "other.com/"}};
  const struct {
    const char *text, *error;
  } cases[] = {{"{kind: Config, apiVersion: example.com/v1}", ""},
               {"{kind: Config, apiVersion: other.com/v7}", ""},
               {"{kind: Config, apiVersion: example.com/v2}",
                "no kind \"Config\" is registered for version \"example.com/v2\" in scheme"},
               {"{kind: Pod, apiVersion: example.com/v1}", "no kind \"Pod\" is registered"},
               {"{apiVersion: example.com/v1}", "Object 'Kind' is missing in '{"},
               {"{kind: Config}", "Object 'apiVersion' is missing in '{"},
               {"{kind: 3, apiVersion: example.com/v1}", "couldn't get version/kind"}};
  for (const auto& c : cases) {
    DocumentProblems problems;
    const Result<> checked = CheckType(*ParseDocument(c.text, problems), type);
    EXPECT_EQ(checked.has_value(), *c.error == 0) << c.text;
    if (!checked) {
      EXPECT_THAT(checked.error().message(), HasSubstr(c.error));
    }
  }
  DocumentProblems problems;
  EXPECT_THAT(ParseDocument("a: [", problems).error().message(), HasSubstr("error converting YAML to JSON"));
  EXPECT_THAT(ParseDocument("- 1", problems).error().message(), HasSubstr("couldn't get version/kind"));
}

}  // namespace
}  // namespace keelson::component
