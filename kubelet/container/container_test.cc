#include <gtest/gtest.h>

#include "kubelet/container/container_config.h"
#include "kubelet/container/expansion.h"
#include "kubelet/container/field_value.h"
#include "kubelet/container/network_files.h"
#include "kubelet/container/resources.h"
#include "kubelet/container/sandbox_config.h"
#include "kubelet/container/security.h"
#include "kubelet/testing/fake_objects.h"
#include "lib/api/codec/codec.h"

namespace keelson::kubelet {
namespace {

corev1::Pod PodOf(std::string_view json) {
  corev1::Pod pod;
  auto decoded = api::DecodeJson(json, pod);
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message());
  return pod;
}

// What the pods of these tests refer to.
class Objects : public FakeObjects {
 public:
  Objects() {
    for (const char* ns : {"default", "team"}) {
      std::string meta = R"({"metadata":{"namespace":")" + std::string(ns) + R"(","name":")";
      Put<corev1::ConfigMap>(meta + R"(config"},"data":{"COLOR":"blue"}})");
      Put<corev1::Secret>(meta + R"(secret"},"data":{"password":"czNjcmV0"}})");
      Put<corev1::Service>(meta + (std::string(ns) == "default" ? "kubernetes" : "web-ui") +
                           R"("},"spec":{"clusterIP":"10.0.0.1","ports":[
                           {"name":"http","port":80,"protocol":"TCP"}]}})");
    }
  }
};

TEST(Expand, FollowsTheRules) {
  auto lookup = [](const std::string& name) -> std::optional<std::string> {
    if (name == "A") return "1";
    return std::nullopt;
  };
  struct Case {
    const char *in, *out;
  };
  for (const Case& c : {Case{"$(A)", "1"},
                        {"x$(A)y$(A)", "x1y1"},
                        {"$(B)", "$(B)"},
                        {"$$(A)", "$(A)"},
                        {"$$$(A)", "$1"},
                        {"$A", "$A"},
                        {"$(A", "$(A"},
                        {"$", "$"},
                        {"a$$", "a$"}}) {
    EXPECT_EQ(Expand(c.in, lookup), c.out) << c.in;
  }
}

TEST(Env, ResolvesEverySource) {
  corev1::Pod pod = PodOf(R"json({"metadata":{"name":"p","namespace":"team","labels":{"app":"x"}},
    "spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1500m"}},
      "envFrom":[{"prefix":"P_","configMapRef":{"name":"config"}},{"secretRef":{"name":"absent","optional":true}}],
      "env":[{"name":"A","value":"a"},{"name":"B","value":"$(A)-$(P_COLOR)-$(WEB_UI_SERVICE_HOST)-$(NOPE)"},
        {"name":"L","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['app']"}}},
        {"name":"CPU","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},
        {"name":"MEM","valueFrom":{"resourceFieldRef":{"resource":"limits.memory","divisor":"1Mi"}}},
        {"name":"PW","valueFrom":{"secretKeyRef":{"name":"secret","key":"password"}}},
        {"name":"WEB_UI_PORT","value":"mine"}]}]}})json");
  Objects objects;
  NodeContext node;
  node.allocatable["memory"] = api::Amount::FromBytes(100 << 20);
  auto env = BuildEnv(pod, pod.spec().containers(0), objects, node);
  ASSERT_TRUE(env) << env.error().message();
  std::map<std::string, std::string> values(env->begin(), env->end());
  EXPECT_EQ(values.size(), env->size());
  EXPECT_EQ(values["B"], "a-blue-10.0.0.1-$(NOPE)");
  EXPECT_EQ(values["L"], "x");
  EXPECT_EQ(values["CPU"], "2");
  EXPECT_EQ(values["MEM"], "100");
  EXPECT_EQ(values["PW"], "s3cret");
  EXPECT_EQ(values["WEB_UI_PORT"], "mine");
  EXPECT_EQ(values["KUBERNETES_SERVICE_PORT_HTTP"], "80");
  EXPECT_EQ(values["WEB_UI_PORT_80_TCP"], "tcp://10.0.0.1:80");
}

TEST(Env, ServiceLinksAreOfThePodsOwnNamespaceAndCanBeTurnedOff) {
  struct Case {
    const char* spec;
    bool own, api_server;
  };
  Objects objects;
  for (const Case& c : {Case{"{}", true, true},
                        {R"({"enableServiceLinks":true})", true, true},
                        {R"({"enableServiceLinks":false})", false, true}}) {
    corev1::Pod pod = PodOf(std::string(R"({"metadata":{"namespace":"team"},"spec":)") + c.spec + "}");
    pod.mutable_spec()->add_containers()->set_name("c");
    auto env = BuildEnv(pod, pod.spec().containers(0), objects, {});
    ASSERT_TRUE(env) << env.error().message();
    const std::map<std::string, std::string> values(env->begin(), env->end());
    EXPECT_EQ(values.count("WEB_UI_SERVICE_HOST"), c.own) << c.spec;
    EXPECT_EQ(values.count("KUBERNETES_SERVICE_HOST"), c.api_server) << c.spec;
  }
}

TEST(Env, SaysWhatIsMissing) {
  Objects objects;
  corev1::Pod pod = PodOf(R"({"metadata":{"namespace":"team"},"spec":{"containers":[
    {"name":"a","envFrom":[{"configMapRef":{"name":"absent"}}]},
    {"name":"b","env":[{"name":"X","valueFrom":{"configMapKeyRef":{"name":"config","key":"nope"}}}]}]}})");
  EXPECT_EQ(BuildEnv(pod, pod.spec().containers(0), objects, {}).error().message(),
            "configmap \"absent\" not found");
  EXPECT_EQ(BuildEnv(pod, pod.spec().containers(1), objects, {}).error().message(),
            "couldn't find key nope in ConfigMap team/config");
}

TEST(Security, NonRoot) {
  corev1::Pod pod = PodOf(
      R"({"metadata":{"name":"p","namespace":"n","uid":"u"},"spec":{"securityContext":{"runAsNonRoot":true,"fsGroup":7},"containers":[
    {"name":"a"},{"name":"b","securityContext":{"runAsUser":0}},{"name":"c","securityContext":{"runAsUser":5}}]}})");
  cri::Image root, named, user;
  root.uid = 0;
  named.username = "www";
  user.uid = 1000;
  struct Case {
    int container;
    const cri::Image* image;
    const char* error;
  };
  for (const Case& c :
       {Case{0, &root, "container has runAsNonRoot and image will run as root"},
        {0, &named,
         "container has runAsNonRoot and image has non-numeric user (www), cannot verify user is "
         "non-root"},
        {0, &user, ""},
        {1, &user, "container's runAsUser breaks non-root policy"},
        {2, &root, ""}}) {
    cri::ContainerConfig out;
    auto done = ApplyContainerSecurity(pod, pod.spec().containers(c.container), *c.image, {}, out);
    std::string where = " (pod: \"p_n(u)\", container: " + pod.spec().containers(c.container).name() + ")";
    EXPECT_EQ(done ? "" : done.error().message(), *c.error ? c.error + where : "");
    if (done) {
      EXPECT_EQ(out.supplemental_groups, std::vector<int64_t>{7});
    }
  }
}

TEST(Dns, FollowsThePolicy) {
  NodeContext node;
  node.cluster_domain = "cluster.local";
  node.cluster_dns = {"10.0.0.10"};
  DnsConfig host = ParseResolvConf("# x\nnameserver 1.1.1.1\nsearch example.com. lan\noptions edns0\n");
  EXPECT_EQ(host, (DnsConfig{{"1.1.1.1"}, {"example.com", "lan"}, {"edns0"}}));
  struct Case {
    const char* spec;
    DnsConfig want;
  };
  std::vector<std::string> cluster_search = {"team.svc.cluster.local", "svc.cluster.local", "cluster.local",
                                             "example.com", "lan"};
  for (const Case& c : {Case{R"({"dnsPolicy":"ClusterFirst"})", {{"10.0.0.10"}, cluster_search, {"ndots:5"}}},
                        {R"({"dnsPolicy":"ClusterFirst","hostNetwork":true})", host},
                        {R"({"dnsPolicy":"ClusterFirstWithHostNet","hostNetwork":true})",
                         {{"10.0.0.10"}, cluster_search, {"ndots:5"}}},
                        {R"({"dnsPolicy":"Default"})", host},
                        {R"({"dnsPolicy":"None","dnsConfig":{"nameservers":["9.9.9.9"],"searches":["a.b"],
            "options":[{"name":"ndots","value":"2"},{"name":"rotate"}]}})",
                         {{"9.9.9.9"}, {"a.b"}, {"ndots:2", "rotate"}}}}) {
    corev1::Pod pod = PodOf(std::string(R"({"metadata":{"namespace":"team"},"spec":)") + c.spec + "}");
    EXPECT_EQ(PodDns(pod, node, host), c.want) << c.spec;
  }
}

TEST(Hosts, NamesThePod) {
  NodeContext node;
  node.cluster_domain = "cluster.local";
  corev1::Pod pod =
      PodOf(R"({"metadata":{"name":"p","namespace":"team"},"spec":{"hostname":"h","subdomain":"s",
    "hostAliases":[{"ip":"1.2.3.4","hostnames":["foo","bar"]}]}})");
  std::string text = EtcHosts(pod, node, {"10.1.0.2"}, "");
  EXPECT_NE(text.find("\n10.1.0.2\th.s.team.svc.cluster.local\th\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# Entries added by HostAliases.\n1.2.3.4\tfoo\tbar\n"), std::string::npos);
  pod.mutable_spec()->set_host_network(true);
  EXPECT_EQ(EtcHosts(pod, node, {}, "127.0.0.1 x\n").substr(0, 60),
            "# Kubernetes-managed hosts file (host network).\n127.0.0.1 x\n");
}

TEST(ContainerConfig, PutsItTogether) {
  corev1::Pod pod = PodOf(R"json({"metadata":{"name":"p","namespace":"team","uid":"u1"},"spec":{"containers":[
    {"name":"c","image":"img","command":["sh","-c"],"args":["echo $(A)"],"env":[{"name":"A","value":"1"}],
     "volumeMounts":[{"name":"v","mountPath":"/data","readOnly":true},
                     {"name":"v","mountPath":"/sub","subPathExpr":"d/$(A)"}]}]}})json");
  Objects objects;
  NodeContext node;
  VolumePaths volumes = {{"v", {"/vol", false, false, ""}}};
  cri::Image image;
  SubPathFunction join = [](const std::string& path, const std::string& sub, const std::string&,
                            const std::string&, int,
                            bool) -> Result<std::string> { return path + "/" + sub; };
  ContainerInput input{pod, pod.spec().containers(0), image, "sha256:x", 3, volumes, join, "/msg", "/hosts"};
  auto config = BuildContainerConfig(input, objects, node);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->args, std::vector<std::string>{"echo 1"});
  EXPECT_EQ(config->log_path, "c/3.log");
  EXPECT_EQ(config->annotations.at("io.kubernetes.container.restartCount"), "3");
  EXPECT_EQ(config->labels.at("io.kubernetes.pod.uid"), "u1");
  ASSERT_EQ(config->mounts.size(), 4u);
  EXPECT_TRUE(config->mounts[0].readonly);
  EXPECT_EQ(config->mounts[1].host_path, "/vol/d/1");
  EXPECT_EQ(config->mounts[2].container_path, "/etc/hosts");
  EXPECT_EQ(config->mounts[3].container_path, "/dev/termination-log");
  EXPECT_TRUE(config->supplemental_groups.empty());
  pod.mutable_spec()->mutable_security_context()->add_supplemental_groups(5);
  volumes["v"].group = 777;
  volumes["w"].group = 5;
  EXPECT_EQ(BuildContainerConfig(input, objects, node)->supplemental_groups, (std::vector<int64_t>{5, 777}));
  volumes.clear();
  EXPECT_EQ(BuildContainerConfig(input, objects, node).error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace keelson::kubelet
