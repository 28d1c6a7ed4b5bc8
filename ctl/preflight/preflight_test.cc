#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <sstream>

#include "ctl/host/testing/memory_host.h"
#include "ctl/preflight/check.h"
#include "ctl/preflight/host_checks.h"
#include "lib/base/fd.h"

namespace keelson::ctl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Check Failing(const std::string& name) {
  return {name, [](const Host&) { return Findings{{"odd"}, {"bad"}}; }};
}

std::vector<std::string> NamesOf(const Checks& checks) {
  std::vector<std::string> out;
  for (const Check& check : checks) out.push_back(check.name);
  return out;
}

TEST(Preflight, PrintsFindingsAsKubeadmDoes) {
  MemoryHost host;
  std::ostringstream out;
  const auto done = RunChecks({Failing("Swap"), Failing("Mem")}, host, {"mem"}, out);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "preflight checks failed");
  EXPECT_EQ(out.str(),
            "\t[WARNING Swap]: odd\n"
            "\t[WARNING Mem]: odd\n"
            "\t[WARNING Mem]: bad\n"
            "[preflight] Some fatal errors occurred:\n"
            "\t[ERROR Swap]: bad\n"
            "[preflight] If you know what you are doing, you can make a check non-fatal with "
            "`--ignore-preflight-errors=...`\n");
  EXPECT_TRUE(RunChecks({Failing("Swap"), Failing("Mem")}, host, {"all"}, out));
}

TEST(Preflight, NamesWhatARuntimesSettingsLack) {
  MemoryHost host;
  const auto warnings = [&](const std::string& driver, bool kube_cni) {
    const Checks checks = RuntimeConfigChecks("unix:///run/c.sock", driver, kube_cni);
    EXPECT_THAT(NamesOf(checks), ElementsAre("ContainerRuntimeConfig"));
    const Findings found = checks[0].run(host);
    EXPECT_THAT(found.errors, IsEmpty());
    return found.warnings;
  };
  EXPECT_THAT(warnings("", true), IsEmpty()) << "the check CRI tells that there is none";
  // As containerd 1.6 prints it.
  host.runtime = RuntimeFacts{
      "containerd", "1.6.20", "",
      R"({"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"runtimeType":"io.containerd.runc.v2",)"
      R"("options":{"SystemdCgroup":false}}}},"cni":{"binDir":"/usr/lib/cni","confDir":"/etc/cni/net.d"}})"};
  EXPECT_THAT(
      warnings("", true),
      ElementsAre(HasSubstr("the cgroup driver cgroupfs, and the kubelet systemd: set SystemdCgroup = true"),
                  HasSubstr("looks for CNI plugins in /usr/lib/cni")));
  EXPECT_THAT(warnings("cgroupfs", false), IsEmpty());
  host.files["/usr/lib/cni/keelson-policy"] = {};
  EXPECT_THAT(warnings("cgroupfs", true), IsEmpty());
  // What newer ones tell by RuntimeConfig wins, and their directories are a list.
  host.runtime = RuntimeFacts{"containerd", "2.1.0", "systemd", R"({"cni":{"binDirs":["/opt/cni/bin",""]}})"};
  EXPECT_THAT(warnings("", true), ElementsAre(HasSubstr("looks for CNI plugins in /opt/cni/bin,")));
  host.runtime = RuntimeFacts{"cri-o", "1.33.0", "systemd", "not JSON"};
  EXPECT_THAT(warnings("", true), IsEmpty());
}

TEST(Preflight, NamesToIgnoreAreChecked) {
  EXPECT_THAT(*IgnoredChecks({"Swap", " NumCPU"}), ElementsAre("swap", "numcpu"));
  EXPECT_THAT(IgnoredChecks({"all", "Swap"}).error().message(),
              HasSubstr("don't specify individual checks if 'all' is used"));
}

TEST(Preflight, FindsWhatIsWrongWithFiles) {
  MemoryHost host;
  host.files["/etc/kubernetes/kubelet.conf"] = {};
  host.files["/var/lib/keelson/controlplane/etcd/member/wal"] = {};
  host.files["/proc/sys/net/ipv4/ip_forward"].text = "0\n";
  host.files["/proc/swaps"].text = "Filename Type Size\n/swap file 1\n";
  const std::tuple<Check, const char*, const char*> cases[] = {
      {FileAvailableCheck("/etc/kubernetes/kubelet.conf"), "FileAvailable--etc-kubernetes-kubelet.conf",
       "/etc/kubernetes/kubelet.conf already exists"},
      {DirectoryAvailableCheck("/var/lib/keelson/controlplane/etcd"),
       "DirAvailable--var-lib-keelson-controlplane-etcd", "/var/lib/keelson/controlplane/etcd is not empty"},
      {FileContentCheck("/proc/sys/net/ipv4/ip_forward", "1"), "FileContent--proc-sys-net-ipv4-ip_forward",
       "/proc/sys/net/ipv4/ip_forward contents are not set to 1"},
      {FileContentCheck("/none", "1"), "FileContent--none", "/none does not exist"},
      {FileExistsCheck("/none", "ExternalEtcdClientCertificates"), "ExternalEtcdClientCertificates",
       "/none doesn't exist"},
      {ProgramCheck("conntrack"), "FileExisting-conntrack", "conntrack not found in system path"},
      {UnitCheck("crio"), "Service-Crio", "crio service does not exist"},
      {RuntimeCheck("unix:///nowhere.sock"), "CRI",
       "container runtime is not running: connect to /nowhere.sock"},
  };
  for (const auto& [check, name, error] : cases) {
    EXPECT_EQ(check.name, name);
    EXPECT_THAT(check.run(host).errors, ElementsAre(StartsWith(error))) << name;
  }
  EXPECT_THAT(SwapCheck().run(host).warnings, ElementsAre(HasSubstr("swap is supported for cgroup v2 only")));
  MemoryHost clean;
  clean.files["/proc/sys/net/ipv4/ip_forward"].text = "1\n";
  EXPECT_THAT(FileAvailableCheck("/a").run(clean).errors, IsEmpty());
  EXPECT_THAT(DirectoryAvailableCheck("/a").run(clean).errors, IsEmpty());
  EXPECT_THAT(FileContentCheck("/proc/sys/net/ipv4/ip_forward", "1").run(clean).errors, IsEmpty());
  EXPECT_THAT(SwapCheck().run(clean).warnings, IsEmpty());
  EXPECT_THAT(UnitCheck("kube-controlplane").run(clean).errors, IsEmpty());
}

TEST(Preflight, FindsAnotherNetworkPlugin) {
  MemoryHost host;
  EXPECT_THAT(CniConfigCheck().run(host).errors, IsEmpty());
  host.files["/etc/cni/net.d/10-keelson.conflist"] = {};
  host.files["/etc/cni/net.d/README"] = {};
  EXPECT_THAT(CniConfigCheck().run(host).errors, IsEmpty());
  host.files["/etc/cni/net.d/05-cilium.conflist"] = {};
  host.files["/etc/cni/net.d/87-podman.conflist"] = {};
  EXPECT_THAT(CniConfigCheck().run(host).errors,
              ElementsAre(StartsWith("/etc/cni/net.d/05-cilium.conflist is of another network plugin")));
  EXPECT_THAT(CniConfigCheck().run(host).warnings,
              ElementsAre(StartsWith("/etc/cni/net.d/87-podman.conflist")));
  InitConfiguration config;
  EXPECT_THAT(NamesOf(InitChecks(config, false)), Contains("CNIConfig"));
  config.skip_phases = {"addon/kube-cni"};
  EXPECT_THAT(NamesOf(InitChecks(config, false)), Not(Contains("CNIConfig")));
}

TEST(Preflight, ComparesTheKubeletsVersion) {
  MemoryHost host;
  EXPECT_THAT(KubeletVersionCheck().run(host).errors, IsEmpty());
  host.kubelet_version = "Kubernetes v1.37.0\n";
  EXPECT_THAT(KubeletVersionCheck().run(host).errors,
              ElementsAre(HasSubstr("the kubelet version is higher than the control plane version")));
  host.kubelet_version = "Kubernetes v1.32.9\n";
  EXPECT_THAT(KubeletVersionCheck().run(host).errors,
              ElementsAre(HasSubstr("is lower than kubeadm can support")));
  host.kubelet_version = "what?\n";
  EXPECT_THAT(KubeletVersionCheck().run(host).errors, ElementsAre(HasSubstr("couldn't get kubelet version")));
}

TEST(Preflight, FindsAPortInUse) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(fd.get(), 1), 0);
  ASSERT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const uint16_t port = ntohs(address.sin_port);
  MemoryHost host;
  const Check check = PortCheck(port);
  EXPECT_EQ(check.name, "Port-" + std::to_string(port));
  EXPECT_THAT(check.run(host).errors, ElementsAre("Port " + std::to_string(port) + " is in use"));
}

TEST(Preflight, ARunThatGoesOnMeetsItsOwnFilesAndDaemons) {
  InitConfiguration config;
  config.advertise_address = "192.0.2.1";
  config.node.name = "n";
  for (const char* name : {"Port-6443", "Port-10250", "DirAvailable--var-lib-keelson-controlplane-etcd",
                           "FileAvailable--etc-kubernetes-kube-controlplane.env"}) {
    EXPECT_THAT(NamesOf(InitChecks(config, false)), Contains(name));
    EXPECT_THAT(NamesOf(InitChecks(config, true)), Not(Contains(name)));
  }
  EXPECT_THAT(NamesOf(InitChecks(config, true)), Contains("FileContent--proc-sys-net-ipv4-ip_forward"));
  EXPECT_THAT(NamesOf(InitChecks(config, true)),
              Contains("FileAvailable--etc-kubernetes-manifests-etcd.yaml"));
  JoinConfiguration join;
  join.api_server_endpoint = "[fd00::1]:6443";
  EXPECT_THAT(NamesOf(JoinChecks(join, false)),
              Contains("FileAvailable--etc-kubernetes-bootstrap-kubelet.conf"));
  EXPECT_THAT(NamesOf(JoinChecks(join, false)),
              Contains("FileContent--proc-sys-net-ipv6-conf-default-forwarding"));
  EXPECT_THAT(NamesOf(JoinChecks(join, true)), Not(Contains("FileAvailable--etc-kubernetes-pki-ca.crt")));
}

}  // namespace
}  // namespace keelson::ctl
