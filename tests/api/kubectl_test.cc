// kubectl in every verb: each file in kubectl/ is a test with its own namespace, on one control plane with
// controllers. README.md describes the keys.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "lib/base/file.h"
#include "tests/api/fixture.h"
#include "tests/api/json_value.h"
#include "tests/apiserver/cluster.h"

namespace keelson::apitest {
namespace {

namespace fs = std::filesystem;
using apiserver::Output;
using apiserver::TestCluster;

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

class Kubectl : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    missing_ = TestCluster::Missing();
    if (missing_.empty()) cluster_ = std::make_unique<TestCluster>();
  }
  static void TearDownTestSuite() { cluster_.reset(); }

  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << missing_;
    ns_ = "k-" + fs::path(GetParam()).stem().string();
    dir_ = cluster_->pki().dir() + "/" + ns_;
    fs::create_directories(dir_);
    ASSERT_EQ(cluster_->Kubectl({"create", "ns", ns_}).code, 0);
    Output account = cluster_->Kubectl({"-n", ns_, "wait", "--for=create", "sa/default", "--timeout=30s"});
    ASSERT_EQ(account.code, 0) << account.err;
    std::string config = *ReadFile(cluster_->pki().dir() + "/admin.conf");
    config = Replace(config, "context: {cluster: c, user: u",
                     "context: {namespace: " + ns_ + ", cluster: c, user: u");
    ASSERT_TRUE(WriteFile(dir_ + "/kubeconfig", config));
  }

  // "$NS" is the test's namespace. (An own spelling of it, since /bin/sh would expand it too late for files.)
  std::string Fill(const json::value& text) const {
    return Replace(std::string(text.as_string()), "$NS", ns_);
  }

  Output Run(const json::object& step) {
    std::string script = "export KUBECONFIG=" + dir_ + "/kubeconfig KUBECACHEDIR=" + cluster_->pki().dir() +
                         "/cache HOME=" + dir_ + "; cd " + dir_ + "; " + Fill(step.at("run"));
    const json::value* input = step.if_contains("stdin");
    return apiserver::RunProgram({"sh", "-c", script}, input ? Fill(*input) : "");
  }

  // The differences from the step's expectation.
  std::vector<std::string> Problems(const json::object& step, const Output& output) {
    std::vector<std::string> out;
    const json::value* code = step.if_contains("code");
    int wanted = !code ? 0 : code->is_int64() ? static_cast<int>(code->as_int64()) : output.code;  // or "any"
    if (output.code != wanted) {
      out.push_back("exit code " + std::to_string(output.code) + ", expected " + std::to_string(wanted));
    }
    if (const json::value* exact = step.if_contains("exact"); exact && output.out != Fill(*exact)) {
      out.push_back("stdout is not:\n" + Fill(*exact));
    }
    Contains(step, "out", output.out, true, out);
    Contains(step, "not", output.out, false, out);
    Contains(step, "err", output.err, true, out);
    for (const json::value& form : List(step, "match")) {
      std::regex regex(Replace(Fill(form), "\\" + ns_, ns_));
      if (!std::regex_search(output.out, regex)) out.push_back("nothing in stdout matches: " + Fill(form));
    }
    return out;
  }

  void Contains(const json::object& step, const char* key, const std::string& text, bool wanted,
                std::vector<std::string>& out) {
    for (const json::value& part : List(step, key)) {
      if ((text.find(Fill(part)) != std::string::npos) != wanted) {
        out.push_back(std::string(wanted ? "not in " : "in ") +
                      (key == std::string("err") ? "stderr: " : "stdout: ") + Fill(part));
      }
    }
  }

  static json::array List(const json::object& step, const char* key) {
    const json::value* list = step.if_contains(key);
    return list ? list->as_array() : json::array();
  }

  static inline std::string missing_;
  static inline std::unique_ptr<TestCluster> cluster_;
  std::string ns_, dir_;
};

TEST_P(Kubectl, Does) {
  json::object scenario = ParseYaml(*ReadFile(GetParam())).as_object();
  if (const json::value* files = scenario.if_contains("files")) {
    for (const auto& file : files->as_object()) {
      std::string path = dir_ + "/" + std::string(file.key());
      fs::create_directories(fs::path(path).parent_path());
      ASSERT_TRUE(WriteFile(path, Fill(file.value())));
    }
  }
  for (const json::value& one : scenario.at("steps").as_array()) {
    const json::object& step = one.as_object();
    Output output = Run(step);
    std::string text;
    for (const std::string& problem : Problems(step, output)) text += problem + "\n";
    if (text.empty()) continue;
    ADD_FAILURE() << Fill(step.at("run")) << "\n"
                  << text << "stdout:\n"
                  << output.out << "stderr:\n"
                  << output.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Api, Kubectl, testing::ValuesIn(FixtureFiles(KEELSON_KUBECTL)),
                         [](const testing::TestParamInfo<std::string>& file) {
                           return fs::path(file.param).stem().string();
                         });

}  // namespace
}  // namespace keelson::apitest
