// Numbers, ages, ids, tables, documents and templates as crictl prints them.
#include "ctl/cri/text.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/json.hpp>

#include "ctl/cri/document.h"
#include "ctl/cri/go_template.h"
#include "lib/rpc/proto/cri.pb.h"

namespace keelson::ctl {
namespace {

using std::chrono::seconds;

TEST(CriTextTest, AgesHaveGoUnitsWords) {
  constexpr int64_t kHour = 3600, kDay = 24 * kHour;
  const struct {
    int64_t age;
    const char* text;
  } cases[] = {
      {-5, "Less than a second"}, {0, "Less than a second"}, {1, "1 second"},
      {17, "17 seconds"},         {60, "About a minute"},    {119, "About a minute"},
      {120, "2 minutes"},         {59 * 60, "59 minutes"},   {kHour, "About an hour"},
      {kHour + 1800, "2 hours"},  {47 * kHour, "47 hours"},  {2 * kDay, "2 days"},
      {13 * kDay, "13 days"},     {14 * kDay, "2 weeks"},    {59 * kDay, "8 weeks"},
      {60 * kDay, "2 months"},    {729 * kDay, "24 months"}, {730 * kDay, "2 years"},
  };
  for (const auto& one : cases) EXPECT_EQ(HumanDuration(seconds(one.age)), one.text) << one.age;
  EXPECT_EQ(Ago(1000000000, WallTime(seconds(18))), "17 seconds ago");
}

TEST(CriTextTest, SizesAreDecimalWithAsManyDigitsAsCount) {
  EXPECT_EQ(HumanSize(0), "0B");
  EXPECT_EQ(HumanSize(999), "999B");
  EXPECT_EQ(HumanSize(742472, 3), "742kB");
  EXPECT_EQ(HumanSize(1146369, 3), "1.15MB");
  EXPECT_EQ(HumanSize(12345678), "12.35MB");
  EXPECT_EQ(HumanSize(2e9), "2GB");
}

TEST(CriTextTest, IdsHaveThirteenCharacters) {
  const std::string digest(64, 'a');
  EXPECT_EQ(TruncatedId("f84dd361f8dc51518ed291fbadd6db537"), "f84dd361f8dc5");
  EXPECT_EQ(TruncatedId("short"), "short");
  EXPECT_EQ(TruncatedId("sha256:" + digest, "sha256:"), std::string(13, 'a'));
  EXPECT_EQ(TruncatedImage("sha256:" + digest), std::string(13, 'a'));
  EXPECT_EQ(TruncatedImage("sha256:short"), "sha256:short");
  EXPECT_EQ(TruncatedImage("docker.io/library/busybox:latest"), "docker.io/library/busybox:latest");
}

TEST(CriTextTest, TablesHaveColumnsOfTwentyCharacters) {
  EXPECT_EQ(CriTable({{"POD ID", "NAME"}, {"f84dd361f8dc5", "a"}, {"12345678901234567890", "b"}}),
            "POD ID                 NAME\n"
            "f84dd361f8dc5          a\n"
            "12345678901234567890   b\n");
  EXPECT_EQ(CriTable({{"A", "B"}, {"é", "b"}}),
            "A                   B\n"
            "é                   b\n");
}

TEST(CriTextTest, TimesAreLocalWithTheDigitsThatCount) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  EXPECT_EQ(LocalTime(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(LocalTime(1700000000120000000), "2023-11-14T22:13:20.12Z");
  ::setenv("TZ", "XXX-05:30", 1);
  ::tzset();
  EXPECT_EQ(LocalTime(1700000000000000001), "2023-11-15T03:43:20.000000001+05:30");
  ::unsetenv("TZ");
  ::tzset();
}

TEST(CriDocumentTest, MessagesShowEmptyFieldsToo) {
  runtime::v1::PodSandbox pod;
  pod.set_id("p");
  pod.set_created_at(5);
  pod.mutable_metadata()->set_name("web");
  const auto document = MessageDocument(pod);
  ASSERT_TRUE(document) << document.error().message();
  const auto text = CriText(*document, CriFormat::kJson);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, R"({
  "id": "p",
  "metadata": {
    "name": "web",
    "uid": "",
    "namespace": "",
    "attempt": 0
  },
  "state": "SANDBOX_READY",
  "createdAt": "5",
  "labels": {},
  "annotations": {},
  "runtimeHandler": ""
}
)");
}

TEST(CriDocumentTest, InfoStandsBesideTheStatus) {
  const auto document = StatusDocument(boost::json::parse(R"({"b":1,"a":2})"),
                                       {{"info", R"({"pid":7,"image":{}})"}, {"version", "\"1.2\""}});
  ASSERT_TRUE(document);
  EXPECT_EQ(*StatusText({*document}, CriFormat::kJson, ""),
            "{\n  \"info\": {\n    \"image\": {},\n    \"pid\": 7\n  },\n  \"status\": {\n    \"a\": 2,\n    "
            "\"b\": 1\n  },\n  \"version\": \"1.2\"\n}\n");
  EXPECT_TRUE(StatusText({*document, *document}, CriFormat::kJson, "")->starts_with("[\n  {\n"));
  EXPECT_EQ(*StatusText({*document}, CriFormat::kGoTemplate, "{{.info.pid}}"), "7\n");
  EXPECT_FALSE(StatusDocument({}, {{"info", "{broken"}}));
  EXPECT_FALSE(CriText(*document, CriFormat::kTable));
}

TEST(CriDocumentTest, ConfigsHaveEitherSpellingAndPlainVariables) {
  runtime::v1::ContainerConfig config;
  const auto read = ReadMessage(
      "metadata: {name: main}\nlog_path: main.log\nimage: {userSpecifiedImage: x}\n"
      "envs: [{key: A, value: b=c}]\nlinux: {security_context: {namespace_options: {pid: 1}}}\n",
      config);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(config.log_path(), "main.log");
  EXPECT_EQ(config.image().user_specified_image(), "x");
  EXPECT_EQ(config.envs(0).value(), "b=c");
  EXPECT_EQ(config.linux().security_context().namespace_options().pid(), runtime::v1::CONTAINER);
  EXPECT_FALSE(ReadMessage("unknown: 1\n", config));
  EXPECT_FALSE(ReadMessage("{", config));
}

TEST(CriTemplateTest, KnowsFieldsIfRangeAndJson) {
  const boost::json::value document = boost::json::parse(
      R"({"status":{"state":"Running","exitCode":0},"list":[{"n":"a"},{"n":"b"}],"none":[],"map":{"y":2,"x":1}})");
  const struct {
    const char *text, *want;
  } cases[] = {
      {"{{.status.state}}", "Running"},
      {"{{ .status.exitCode }}!", "0!"},
      {"{{.status.absent}}", "<no value>"},
      {"{{range .list}}{{.n}},{{end}}", "a,b,"},
      {"{{range .none}}x{{else}}none{{end}}", "none"},
      {"{{range .map}}{{.}}{{end}}", "12"},
      {"{{if .status.exitCode}}failed{{else}}fine{{end}}", "fine"},
      {"{{if .list}}{{range .list}}{{if .n}}{{.n}}{{end}}{{end}}{{end}}", "ab"},
      {"a {{- .status.exitCode -}} b", "a0b"},
      {"{{json .list}}", R"([{"n":"a"},{"n":"b"}])"},
      {"plain{{/* nothing */}}", "plain"},
  };
  for (const auto& one : cases) {
    const auto text = ExecuteGoTemplate(one.text, document);
    ASSERT_TRUE(text) << one.text << ": " << text.error().message();
    EXPECT_EQ(*text, one.want) << one.text;
  }
  for (const char* bad :
       {"", "{{.a", "{{end}}", "{{if .list}}", "{{range $i := .list}}{{end}}", "{{.list | len}}",
        "{{printf .x}}", "{{.status}}", "{{if .none}}{{else}}{{else}}{{end}}"}) {
    EXPECT_FALSE(ExecuteGoTemplate(bad, document)) << bad;
  }
}

}  // namespace
}  // namespace keelson::ctl
