#include "lib/component/logging_options.h"

#include <gtest/gtest.h>

#include "lib/base/log.h"

namespace keelson::component {
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
    const json::object document = {{"logging", json::parse(c.text)}};
    component::DocumentProblems problems{.kind = "Configuration"};
    {
      component::DocumentReader in(document, problems);
      ReadLoggingOptions(in);
    }
    const std::string wrong = component::Join(problems.wrong);
    EXPECT_EQ(wrong.empty(), *c.error == 0) << c.text;
    EXPECT_NE(wrong.find(c.error), std::string::npos) << wrong;
    EXPECT_EQ(problems.strict.empty() ? "" : problems.strict.front(), c.problem) << c.text;
  }
}

TEST(LoggingOptions, VerbosityHasOneThreshold) {
  for (int verbosity : {0, 2, 3, 4, 9}) {
    ApplyVerbosity(verbosity);
    EXPECT_EQ(log::Enabled(log::Level::kDebug), verbosity >= 4) << verbosity;
    EXPECT_TRUE(log::Enabled(log::Level::kInfo)) << verbosity;
  }
  ApplyVerbosity(0);
}

}  // namespace
}  // namespace keelson::component
