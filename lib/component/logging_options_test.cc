#include "lib/component/logging_options.h"

#include <gtest/gtest.h>

namespace keelson::k8s {
namespace {

namespace json = boost::json;

TEST(LoggingOptions, FormatIsTextOrJson) {
  EXPECT_TRUE(ApplyLogFormat("text"));
  for (const char* other : {"xml", "JSON", ""}) {
    const Result<> refused = ApplyLogFormat(other);
    ASSERT_FALSE(refused) << other;
    EXPECT_EQ(refused.error().message(), "initialize logging: logging.format: Invalid value: \"" +
                                             std::string(other) + "\": Unsupported log format");
  }
}

TEST(LoggingOptions, AreReadInEachFormThatTheyHave) {
  const struct {
    const char *text, *error, *problem;  // of the error a part; "": none
  } cases[] = {
      {R"({})", "", ""},
      {R"({"options":null,"vmodule":null})", "", ""},
      {R"({"options":{"json":{"infoBufferSize":"0"},"text":{"infoBufferSize":"64Ki","splitStream":true}}})",
       "", ""},
      {R"({"options":{"json":{"infoBufferSize":0},"text":{"infoBufferSize":65536}}})", "", ""},
      {R"({"options":{"json":{"infoBufferSize":1.5}}})", "", ""},
      {R"({"options":{"json":{"infoBufferSize":"many"}}})", "logging.options.json.infoBufferSize: ", ""},
      {R"({"options":{"json":{"infoBufferSize":true}}})", "of type resource.QuantityValue", ""},
      {R"({"options":{"text":{"splitStream":"yes"}}})", "logging.options.text.splitStream of type bool", ""},
      {R"({"options":{"text":{"size":1}}})", "", "unknown field \"logging.options.text.size\""},
      {R"({"options":{"xml":{}}})", "", "unknown field \"logging.options.xml\""},
      {R"({"options":[]})", "logging.options of type struct", ""},
      {R"({"vmodule":[{"filePattern":"kube*","verbosity":4}]})", "", ""},
      {R"({"vmodule":[{"filePattern":"kube*","verbosity":"4"}]})", "of type v1.VerbosityLevel", ""},
      {R"({"vmodule":"kube*=4"})", "logging.vmodule of type slice", ""},
  };
  for (const auto& c : cases) {
    std::vector<std::string> problems;
    auto checked = CheckLoggingOptions(json::parse(c.text).as_object(), problems);
    EXPECT_EQ(checked.has_value(), *c.error == 0) << c.text;
    if (!checked) {
      EXPECT_NE(checked.error().message().find(c.error), std::string::npos) << checked.error().message();
    }
    EXPECT_EQ(problems.empty() ? "" : problems.front(), c.problem) << c.text;
  }
}

TEST(LoggingOptions, FlushFrequencyIsTextOrNanoseconds) {
  const std::pair<const char*, int64_t> cases[] = {
      {"0", 0}, {"5000000000", 5000000000}, {R"("5s")", 5000000000}, {R"("0s")", 0}, {R"("0")", 0}};
  for (const auto& [text, nanos] : cases) EXPECT_EQ(*ParseFlushFrequency(json::parse(text)), nanos) << text;
  for (const char* text : {R"("5")", "1.5", "true", "{}"})
    EXPECT_FALSE(ParseFlushFrequency(json::parse(text))) << text;
}

}  // namespace
}  // namespace keelson::k8s
