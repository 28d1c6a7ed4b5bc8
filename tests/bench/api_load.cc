// Loads an API server over HTTPS: writes of every kind next to writes to a separate etcd on the same disk,
// LISTs of many pods in every format, and memory per pod. Prints one line per measurement:
//   NAME COUNT PER_SECOND P50_MS P99_MS SERVER_CPU_US_EACH [BYTES]
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include "controlplane/etcd/supervisor.h"
#include "lib/base/file.h"
#include "lib/client/transport.h"
#include "lib/http/client/client.h"
#include "tests/bench/load.h"

namespace keelson {
namespace {

using bench::Json;

struct Options {
  std::string kubeconfig, etcd_dir;
  std::vector<int> pids;
  int writes = 4000, pods = 10000, workers = 32, lists = 5;
};

class Load {
 public:
  Load(Options options, client::RestConfig config)
      : options_(std::move(options)), client_(std::move(config), options_.pids) {}

  Result<> Run() {
    ns_ = fmt::format("api-load-{}", getpid());
    KEELSON_RETURN_IF_ERROR(
        Send("POST", "/api/v1/namespaces",
             Json(fmt::format("{{'apiVersion':'v1','kind':'Namespace','metadata':{{'name':'{}'}}}}", ns_))));
    Result<> done = Measure();
    Result<> removed = Send("DELETE", "/api/v1/namespaces/" + ns_, "");
    return done ? removed : done;
  }

 private:
  using Make = std::function<http::ClientRequest(int)>;

  Result<> Measure() {
    if (!options_.etcd_dir.empty()) KEELSON_RETURN_IF_ERROR(EtcdPuts());
    KEELSON_RETURN_IF_ERROR(Writes());
    KEELSON_RETURN_IF_ERROR(Patches());
    return Pods();
  }

  http::ClientRequest Request(std::string method, std::string target, std::string body,
                              std::string type = "application/json") const {
    return client_.Request(std::move(method), std::move(target), std::move(body), std::move(type));
  }
  Result<> Send(std::string method, std::string target, std::string body) const {
    Result<std::string> sent = client_.Send(std::move(method), std::move(target), std::move(body));
    return sent ? Result<>() : sent.error();
  }
  Result<> TimeRequests(const std::string& name, int count, int workers, const Make& make) const {
    Result<double> timed = client_.TimeRequests(name, count, workers, make);
    return timed ? Result<>() : timed.error();
  }

  // The lower bound: the same bytes written to an otherwise idle etcd.
  Result<> EtcdPuts() {
    etcd::SupervisorOptions own;
    own.data_dir = fmt::format("{}/api-load-{}", options_.etcd_dir, getpid());
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<etcd::Supervisor> supervisor, etcd::Supervisor::Make(own));
    std::promise<void> ready;
    std::jthread thread(
        [&](std::stop_token stop) { (void)supervisor->Run(stop, [&] { ready.set_value(); }); });
    ready.get_future().wait();
    etcd::Client client(supervisor->client_options());
    std::string value(600, 'x');
    Result<double> timed = client_.Time(
        "etcd put, 600 bytes", options_.writes, options_.workers, [&](int, int i) -> Result<size_t> {
          KEELSON_ASSIGN_OR_RETURN(
              etcd::TxnResult put,
              client.PutIf(fmt::format("/registry/configmaps/x/{}", i), value, 0, 0, {}));
          return put.succeeded ? value.size() : 0;
        });
    thread.request_stop();
    thread.join();
    (void)RemoveTree(own.data_dir);
    return timed ? Result<>() : timed.error();
  }

  std::string ConfigMaps() const { return "/api/v1/namespaces/" + ns_ + "/configmaps"; }
  static std::string ConfigMap(int i, std::string_view value) {
    return Json(fmt::format(
        "{{'apiVersion':'v1','kind':'ConfigMap','metadata':{{'name':'c{}','labels':{{'app':'load'}}}},"
        "'data':{{'a':'{}','b':'{:300}'}}}}",
        i, value, 'b'));
  }

  Result<> Writes() {
    KEELSON_RETURN_IF_ERROR(TimeRequests("create ConfigMaps", options_.writes, options_.workers, [&](int i) {
      return Request("POST", ConfigMaps(), ConfigMap(i, "1"));
    }));
    KEELSON_RETURN_IF_ERROR(TimeRequests("get", options_.writes, options_.workers, [&](int i) {
      return Request("GET", fmt::format("{}/c{}", ConfigMaps(), i), "");
    }));
    return TimeRequests("update", options_.writes, options_.workers, [&](int i) {
      return Request("PUT", fmt::format("{}/c{}", ConfigMaps(), i), ConfigMap(i, "2"));
    });
  }

  Result<> Patches() {
    struct {
      const char *name, *type, *query, *body;
    } kinds[] = {
        {"patch, JSON", "application/json-patch+json", "", "[{'op':'replace','path':'/data/a','value':'3'}]"},
        {"patch, merge", "application/merge-patch+json", "", "{'data':{'a':'4'}}"},
        {"patch, strategic merge", "application/strategic-merge-patch+json", "", "{'data':{'a':'5'}}"},
        {"patch that changes nothing", "application/merge-patch+json", "", "{'data':{'a':'5'}}"},
    };
    for (const auto& kind : kinds) {
      KEELSON_RETURN_IF_ERROR(TimeRequests(kind.name, options_.writes, options_.workers, [&](int i) {
        return Request("PATCH", fmt::format("{}/c{}", ConfigMaps(), i), Json(kind.body), kind.type);
      }));
    }
    // First as a new manager, then with a change, then without one; and what makes objects.
    for (auto [name, value, first] : {std::tuple{"apply, takes a field over", "6", 0},
                                      {"apply, changes a field", "7", 0},
                                      {"apply that changes nothing", "7", 0},
                                      {"apply that creates", "8", 1'000'000}}) {
      KEELSON_RETURN_IF_ERROR(
          TimeRequests(name, options_.writes, options_.workers, [&, value = value, first = first](int i) {
            return Request("PATCH",
                           fmt::format("{}/c{}?fieldManager=load&force=true", ConfigMaps(), first + i),
                           ConfigMap(first + i, value), "application/apply-patch+yaml");
          }));
    }
    return {};
  }

  // A pod of 3 containers and 36 variables that no scheduler touches.
  std::string Pod(int i) const {
    std::string containers;
    for (int c = 0; c < 3; ++c) {
      std::string env;
      for (int e = 0; e < 12; ++e) {
        env +=
            fmt::format("{}{{'name':'VARIABLE_{}','value':'some value of usual length'}}", e ? "," : "", e);
      }
      containers += fmt::format("{}{{'name':'c{}','image':'registry.example.com/team/app:1.2.3','env':[{}]}}",
                                c ? "," : "", c, env);
    }
    return Json(
        fmt::format("{{'apiVersion':'v1','kind':'Pod','metadata':{{'name':'p{}','labels':{{'app':'load'}}}},"
                    "'spec':{{'schedulingGates':[{{'name':'load/never'}}],'containers':[{}]}}}}",
                    i, containers));
  }

  Result<> Pods() {
    std::string path = "/api/v1/namespaces/" + ns_ + "/pods";
    double before = client_.servers().AnonymousMib();
    KEELSON_RETURN_IF_ERROR(TimeRequests("create Pods", options_.pods, options_.workers,
                                         [&](int i) { return Request("POST", path, Pod(i)); }));
    fmt::print("{:<34} {:.1f} MiB anonymous, from {:.1f}\n", "after the pods",
               client_.servers().AnonymousMib(), before);
    struct {
      const char *name, *accept, *query;
      bool gzip;
    } lists[] = {
        {"LIST JSON, first", "application/json", "", false},
        {"LIST JSON", "application/json", "", false},
        {"LIST JSON from the cache", "application/json", "?resourceVersion=0", false},
        {"LIST JSON, gzip", "application/json", "", true},
        {"LIST protobuf", "application/vnd.kubernetes.protobuf", "", false},
        {"LIST Table, first", "application/json;as=Table;g=meta.k8s.io;v=v1", "", false},
        {"LIST Table", "application/json;as=Table;g=meta.k8s.io;v=v1", "", false},
        {"LIST metadata only", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "", false},
        {"LIST one page of 500", "application/json", "?limit=500", false},
    };
    for (const auto& list : lists) {
      bool first = std::string_view(list.name).find("first") != std::string_view::npos;
      KEELSON_RETURN_IF_ERROR(TimeRequests(list.name, first ? 1 : options_.lists, 1, [&](int) {
        http::ClientRequest request = Request("GET", path + list.query, "");
        request.headers.Add("Accept", list.accept);
        if (list.gzip) request.headers.Add("Accept-Encoding", "gzip");
        return request;
      }));
    }
    fmt::print("{:<34} {:.1f} MiB anonymous\n", "after the lists", client_.servers().AnonymousMib());
    return {};
  }

  Options options_;
  const bench::LoadClient client_;
  std::string ns_;
};

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  using namespace keelson;
  Options options;
  CLI::App app{"Loads an API server and prints what it takes"};
  app.add_option("--kubeconfig", options.kubeconfig, "whose cluster to load")->required();
  app.add_option("--pid", options.pids, "of the servers: CPU of all, memory of the first");
  app.add_option("--etcd-dir", options.etcd_dir,
                 "where an etcd of its own is measured first; none: not at all");
  app.add_option("--writes", options.writes, "of each kind");
  app.add_option("--pods", options.pods, "to create and list");
  app.add_option("--workers", options.workers, "requests under way at once");
  app.add_option("--lists", options.lists, "of each kind");
  CLI11_PARSE(app, argc, argv);
  auto config = client::LoadKubeconfig(options.kubeconfig);
  Result<> done = config ? Load(options, *config).Run() : Result<>(config.error());
  if (done) return 0;
  fmt::print(stderr, "api_load: {}\n", done.error().message());
  return 1;
}
