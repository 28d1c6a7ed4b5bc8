// The flags of kubeadm's manifests, and their effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "controlplane/options/flags.h"
#include "lib/base/file.h"
#include "lib/component/testing/flags.h"

namespace keelson::controlplane {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The arguments of a manifest's container.
std::vector<std::string> ArgumentsOf(const std::string& file) {
  std::istringstream in(ReadFile(KEELSON_SOURCE "/tests/kubeadm/manifests/" + file).value_or(""));
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) {
    constexpr std::string_view kItem = "    - --";
    if (line.starts_with(kItem)) out.push_back(line.substr(kItem.size() - 2));
  }
  return out;
}

TEST(KubeadmFlags, MeanWhatTheySay) {
  const struct {
    const char *role, *file;
    size_t flags;
  } cases[] = {{"apiserver", "kube-apiserver.yaml", 27},
               {"controllers", "kube-controller-manager.yaml", 17},
               {"scheduler", "kube-scheduler.yaml", 5}};
  for (const auto& c : cases) {
    std::vector<std::string> arguments = ArgumentsOf(c.file);
    EXPECT_EQ(arguments.size(), c.flags) << c.file;
    arguments.push_back(std::string("--roles=") + c.role);
    Options options;
    CLI::App app;
    AddFlags(app, options);
    std::ostringstream told;
    ASSERT_FALSE(ParseFlags(app, arguments, told, told)) << c.file << ": " << told.str();
    FinishOptions(app, options);
    EXPECT_THAT(options.without_effect, IsEmpty()) << "kubeadm asks for nothing that is not here";
    if (options.Has("apiserver")) {
      EXPECT_TRUE(options.allow_privileged);
      EXPECT_THAT(options.kubelet_address_types, ElementsAre("InternalIP", "ExternalIP", "Hostname"));
      EXPECT_EQ(options.proxy_certificate_file, "/etc/kubernetes/pki/front-proxy-client.crt");
      EXPECT_EQ(options.secure_port, 6443);
    } else {
      EXPECT_EQ(options.secure_port, options.Has("scheduler") ? 10259 : 10257);
      EXPECT_EQ(options.bind_address, "127.0.0.1");
    }
  }
}

TEST(KubeadmFlags, OfAllRolesGoTogether) {
  std::set<std::string> all = {"--config=/s.yaml", "--cloud-provider=external"};
  for (const char* file : {"kube-apiserver.yaml", "kube-controller-manager.yaml", "kube-scheduler.yaml"}) {
    for (std::string& argument : ArgumentsOf(file)) {
      const bool per_role = argument.find(".conf") != std::string::npos;
      if (!per_role) all.insert(std::move(argument));
    }
  }
  Options options;
  CLI::App app;
  AddFlags(app, options);
  std::ostringstream told;
  ASSERT_FALSE(ParseFlags(app, std::vector<std::string>(all.begin(), all.end()), told, told)) << told.str();
  EXPECT_EQ(options.scheduler_config_file, "/s.yaml");
}

}  // namespace
}  // namespace keelson::controlplane
