// --logging-format and logging.format of the kubelet and kube-proxy: runs that end before they touch the
// host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <sstream>

#include "lib/base/file.h"
#include "lib/event/process.h"

namespace keelson {
namespace {

namespace json = boost::json;

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Program {
  const char *name, *path, *kind;
  std::vector<std::string> arguments;  // with a warning first, and an error at the end
  const char *warning, *error;
};

const Program kPrograms[] = {
    {"kubelet",
     KEELSON_KUBELET,
     "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n",
     {"--boot-id-file=/x", "--exit-on-lock-contention"},
     "A flag without effect",
     "Cannot start"},
    {"kubeproxy",
     KEELSON_KUBE_PROXY,
     "kind: KubeProxyConfiguration\napiVersion: kubeproxy.config.k8s.io/v1alpha1\n",
     {"--boot-id-file=/x", "--ebpf-dsr"},
     "A flag without effect",
     "command failed"},
};

class LogFormat : public testing::TestWithParam<Program> {
 protected:
  void SetUp() override {
    char made[] = "/tmp/keelson-logs-XXXXXX";
    ASSERT_TRUE(::mkdtemp(made));
    dir_ = made;
  }
  ~LogFormat() override { (void)RemoveTree(dir_); }

  // With a configuration file that has this format ("": no file), and --logging-format.
  std::string Run(const std::string& in_file, const std::string& flag) {
    event::ProcessOptions options{.argv = {GetParam().path}, .output_file = dir_ + "/log"};
    (void)RemoveTree(options.output_file);
    options.argv.insert(options.argv.end(), GetParam().arguments.begin(), GetParam().arguments.end());
    if (!in_file.empty()) {
      const std::string file = dir_ + "/config.yaml";
      EXPECT_TRUE(WriteFile(file, GetParam().kind + ("logging: {format: " + in_file + "}\n"), 0600));
      options.argv.push_back("--config=" + file);
    }
    if (!flag.empty()) options.argv.push_back("--logging-format=" + flag);
    auto process = event::Process::Start(options);
    EXPECT_TRUE(process) << process.error().message();
    if (!process) return "";
    auto end = process->Wait({});
    EXPECT_TRUE(end && end->code == 1 && end->signal == 0);
    return ReadFile(options.output_file).value_or("no log");
  }

 private:
  std::string dir_;
};

TEST_P(LogFormat, Json) {
  for (const auto& [in_file, flag] :
       {std::pair("", "json"), std::pair("json", ""), std::pair("text", "json")}) {
    const std::string log = Run(in_file, flag);
    std::istringstream lines(log);
    std::vector<std::string> messages;
    for (std::string line; std::getline(lines, line);) {
      json::error_code failed;
      const json::value read = json::parse(line, failed);
      ASSERT_TRUE(!failed && read.is_object()) << line;
      const json::object& entry = read.get_object();
      messages.emplace_back(entry.at("msg").as_string());
      EXPECT_TRUE(entry.at("ts").is_double()) << line;
      if (messages.back() == GetParam().error) {
        EXPECT_FALSE(entry.contains("v")) << line;
        EXPECT_TRUE(entry.contains("err")) << line;
      } else {
        EXPECT_EQ(entry.at("v"), 0) << line;
      }
    }
    ASSERT_FALSE(messages.empty()) << log;
    EXPECT_EQ(messages.front(), GetParam().warning) << log;
    EXPECT_EQ(messages.back(), GetParam().error) << log;
  }
}

TEST_P(LogFormat, Text) {
  for (const auto& [in_file, flag] :
       {std::pair("", ""), std::pair("text", ""), std::pair("", "text"), std::pair("json", "text")}) {
    const std::string log = Run(in_file, flag);
    EXPECT_THAT(log, StartsWith("W"));
    EXPECT_THAT(log, HasSubstr(std::string("\"") + GetParam().error + "\" err="));
    EXPECT_THAT(log, Not(HasSubstr("{")));
  }
}

TEST_P(LogFormat, AnyOtherEndsTheStart) {
  for (const auto& [in_file, flag] : {std::pair("", "xml"), std::pair("xml", ""), std::pair("json", "xml")}) {
    EXPECT_THAT(
        Run(in_file, flag),
        HasSubstr(R"(initialize logging: logging.format: Invalid value: \"xml\": Unsupported log format)"));
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, LogFormat, testing::ValuesIn(kPrograms),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace keelson
