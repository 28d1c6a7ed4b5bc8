// Defaults of KubeProxyConfiguration at Kubernetes 1.36, field by field.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "lib/k8s/text/yaml.h"
#include "proxy/config/document.h"

namespace keelson::proxy {
namespace {

namespace json = boost::json;

using Values = std::map<std::string, json::value>;

// Fields that are not here have no default beyond their zero.
const std::pair<const char*, const char*> kDefaults[] = {
    {"apiVersion", R"("kubeproxy.config.k8s.io/v1alpha1")"},
    {"kind", R"("KubeProxyConfiguration")"},
    {"bindAddress", R"("0.0.0.0")"},
    {"healthzBindAddress", R"("0.0.0.0:10256")"},
    {"metricsBindAddress", R"("127.0.0.1:10249")"},
    {"oomScoreAdj", "-999"},
    {"iptables.syncPeriod", R"("30s")"},
    {"iptables.localhostNodePorts", "true"},
    {"iptables.masqueradeBit", "14"},
    {"ipvs.syncPeriod", R"("30s")"},
    {"nftables.syncPeriod", R"("30s")"},
    {"nftables.masqueradeBit", "14"},
    // Upstream: 1s each (docs/differences.md).
    {"iptables.minSyncPeriod", R"("0s")"},
    {"nftables.minSyncPeriod", R"("0s")"},
    {"conntrack.maxPerCore", "32768"},
    {"conntrack.min", "131072"},
    {"conntrack.tcpEstablishedTimeout", R"("24h0m0s")"},
    {"conntrack.tcpCloseWaitTimeout", R"("1h0m0s")"},
    {"configSyncPeriod", R"("15m0s")"},
    {"clientConnection.contentType", R"("application/vnd.kubernetes.protobuf")"},
    {"clientConnection.qps", "5"},
    {"clientConnection.burst", "10"},
    {"detectLocalMode", R"("ClusterCIDR")"},
    {"logging.format", R"("text")"},
    {"logging.flushFrequency", R"("5s")"},
};

bool IsZero(const json::value& value) {
  return value.is_null() || value == false || value == 0 || value == "" || value == "0s";
}

void Collect(const std::string& path, const json::value& value, Values& out) {
  if (!value.is_object()) {
    out[path] = value;
    return;
  }
  for (const auto& [key, child] : value.get_object()) {
    Collect(path.empty() ? std::string(key) : path + "." + std::string(key), child, out);
  }
}

// As --write-config-to shows what the text makes.
Values Written(const std::string& text) {
  Document document;
  std::vector<std::string> problems;
  auto read =
      ReadDocument("kind: KubeProxyConfiguration\napiVersion: kubeproxy.config.k8s.io/v1alpha1\n" + text,
                   document, problems);
  EXPECT_TRUE(read) << text << read.error().message();
  EXPECT_TRUE(problems.empty()) << text << problems.front();
  SetDefaults(document);
  Values out;
  auto written = k8s::YamlToJson(ToYaml(document));
  EXPECT_TRUE(written) << written.error().message();
  if (written) Collect("", json::parse(*written), out);
  return out;
}

TEST(ProxyDefaults, AreThoseOfKubernetes136) {
  Values written = Written("");
  for (const auto& [path, value] : kDefaults) {
    EXPECT_EQ(written.count(path), 1u) << path;
    EXPECT_EQ(written[path], json::parse(value)) << path;
    written.erase(path);
  }
  for (const auto& [path, value] : written) EXPECT_TRUE(IsZero(value)) << path << " " << value;
}

TEST(ProxyDefaults, ThatHangOnOtherFields) {
  const struct {
    const char *text, *path, *value;
  } cases[] = {
      {"bindAddress: '::'", "healthzBindAddress", R"("[::]:10256")"},
      {"bindAddress: 'fd00::1'", "metricsBindAddress", R"("[::1]:10249")"},
      {"bindAddress: 10.0.0.1", "healthzBindAddress", R"("0.0.0.0:10256")"},
      {"healthzBindAddress: 10.0.0.1", "healthzBindAddress", R"("10.0.0.1:10256")"},
      {"metricsBindAddress: 10.0.0.1", "metricsBindAddress", R"("10.0.0.1:10249")"},
      // Zero is unset, but where upstream has a pointer.
      {"ipvs: {syncPeriod: 0s}", "ipvs.syncPeriod", R"("30s")"},
      {"clientConnection: {qps: 0}", "clientConnection.qps", "5"},
      {"conntrack: {min: 0}", "conntrack.min", "0"},
      {"conntrack: {tcpEstablishedTimeout: 0s}", "conntrack.tcpEstablishedTimeout", R"("0s")"},
      {"oomScoreAdj: 0", "oomScoreAdj", "0"},
      // Of two forms.
      {"logging: {flushFrequency: 0}", "logging.flushFrequency", R"("5s")"},
      {"logging: {flushFrequency: 3000000000}", "logging.flushFrequency", R"("3s")"},
      {"logging: {flushFrequency: 3s}", "logging.flushFrequency", R"("3s")"},
  };
  for (const auto& c : cases) EXPECT_EQ(Written(c.text)[c.path], json::parse(c.value)) << c.text;
}

}  // namespace
}  // namespace keelson::proxy
