// Loads an API server over HTTPS: writes of every kind next to writes to a separate etcd on the same disk,
// LISTs of many pods in every format, and memory per pod. Prints one line per measurement:
//   NAME COUNT PER_SECOND P50_MS P99_MS SERVER_CPU_US_EACH [BYTES]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
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

namespace keelson {
namespace {

using std::chrono::steady_clock;

struct Options {
  std::string kubeconfig, etcd_dir;
  std::vector<int> pids;
  int writes = 4000, pods = 10000, workers = 32, lists = 5;
};

std::string Json(std::string_view text) {  // with ' for ", for readability below
  std::string out(text);
  std::replace(out.begin(), out.end(), '\'', '"');
  return out;
}

std::string Field(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, name.size(), name) == 0) return line.substr(name.size());
  }
  return "0";
}

class Servers {
 public:
  explicit Servers(std::vector<int> pids) : pids_(std::move(pids)) {}

  double CpuSeconds() const {
    double ticks = 0;
    for (int pid : pids_) {
      Result<std::string> stat = ReadFile(fmt::format("/proc/{}/stat", pid));
      if (!stat) continue;
      unsigned long user = 0, system = 0;
      // Behind the name in parentheses: state is field 3, utime 14.
      std::sscanf(stat->c_str() + stat->rfind(')') + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
      ticks += static_cast<double>(user + system);
    }
    return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  // Of the first one.
  double AnonymousMib() const {
    return pids_.empty()
               ? 0
               : std::atof(Field(fmt::format("/proc/{}/status", pids_[0]), "RssAnon:").c_str()) / 1024;
  }

 private:
  std::vector<int> pids_;
};

class Load {
 public:
  Load(Options options, client::RestConfig config)
      : options_(std::move(options)), config_(std::move(config)), servers_(options_.pids) {}

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

  Result<std::unique_ptr<http::Client>> Connect() const {
    http::ClientOptions options;
    options.base_url = config_.server;
    options.tls.ca_pem = config_.ca_pem;
    options.tls.certificate_pem = config_.certificate_pem;
    options.tls.key_pem = config_.key_pem;
    options.http2 = false;
    return http::Client::Create(options);
  }

  http::ClientRequest Request(std::string method, std::string target, std::string body,
                              std::string type = "application/json") const {
    http::ClientRequest request{std::move(method), std::move(target), {}, std::move(body)};
    if (!request.body.empty()) request.headers.Add("Content-Type", std::move(type));
    if (!config_.token.empty()) request.headers.Add("Authorization", "Bearer " + config_.token);
    return request;
  }

  static Result<size_t> Do(http::Client& client, const http::ClientRequest& request) {
    KEELSON_ASSIGN_OR_RETURN(http::ClientResponse response, client.Do(request, std::chrono::seconds(60)));
    if (response.status / 100 == 2) return response.body.size();
    return Error(Code::kInternal, fmt::format("{} {}: {} {}", request.method, request.target, response.status,
                                              response.body.substr(0, 300)));
  }

  Result<> Send(std::string method, std::string target, std::string body) const {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<http::Client> client, Connect());
    KEELSON_ASSIGN_OR_RETURN([[maybe_unused]] size_t size,
                             Do(*client, Request(std::move(method), std::move(target), std::move(body))));
    return {};
  }

  // Calls `one(worker, i)` for 0 <= i < count from all workers, and prints the duration.
  Result<> Time(const std::string& name, int count, int workers,
                const std::function<Result<size_t>(int, int)>& one) {
    std::vector<std::vector<double>> times(workers);
    std::vector<Result<>> results(workers);
    std::atomic<int> next{0};
    std::atomic<size_t> bytes{0};
    double cpu = servers_.CpuSeconds();
    auto begin = steady_clock::now();
    std::vector<std::thread> threads;
    for (int w = 0; w < workers; ++w) {
      threads.emplace_back([&, w] {
        for (int i; (i = next.fetch_add(1)) < count;) {
          auto start = steady_clock::now();
          Result<size_t> size = one(w, i);
          if (!size) {
            results[w] = size.error();
            return;
          }
          bytes += *size;
          times[w].push_back(std::chrono::duration<double, std::milli>(steady_clock::now() - start).count());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
    cpu = servers_.CpuSeconds() - cpu;
    std::vector<double> all;
    for (const auto& some : times) all.insert(all.end(), some.begin(), some.end());
    for (const Result<>& result : results) KEELSON_RETURN_IF_ERROR(result);
    std::sort(all.begin(), all.end());
    auto at = [&](double p) { return all[std::min(all.size() - 1, static_cast<size_t>(p * all.size()))]; };
    fmt::print("{:<34} {:>6} {:>9.1f}/s p50 {:>8.2f} ms p99 {:>8.2f} ms cpu {:>9.0f} us each {:>11} bytes\n",
               name, count, count / seconds, at(0.5), at(0.99), cpu / count * 1e6, bytes.load() / count);
    std::fflush(stdout);
    return {};
  }

  Result<> TimeRequests(const std::string& name, int count, int workers, const Make& make) {
    std::vector<std::unique_ptr<http::Client>> clients;
    for (int w = 0; w < workers; ++w) {
      KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<http::Client> client, Connect());
      clients.push_back(std::move(client));
    }
    return Time(name, count, workers, [&](int w, int i) { return Do(*clients[w], make(i)); });
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
    Result<> timed =
        Time("etcd put, 600 bytes", options_.writes, options_.workers, [&](int, int i) -> Result<size_t> {
          KEELSON_ASSIGN_OR_RETURN(
              etcd::TxnResult put,
              client.PutIf(fmt::format("/registry/configmaps/x/{}", i), value, 0, 0, {}));
          return put.succeeded ? value.size() : 0;
        });
    thread.request_stop();
    thread.join();
    (void)RemoveTree(own.data_dir);
    return timed;
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
    double before = servers_.AnonymousMib();
    KEELSON_RETURN_IF_ERROR(TimeRequests("create Pods", options_.pods, options_.workers,
                                         [&](int i) { return Request("POST", path, Pod(i)); }));
    fmt::print("{:<34} {:.1f} MiB anonymous, from {:.1f}\n", "after the pods", servers_.AnonymousMib(),
               before);
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
    fmt::print("{:<34} {:.1f} MiB anonymous\n", "after the lists", servers_.AnonymousMib());
    return {};
  }

  Options options_;
  client::RestConfig config_;
  Servers servers_;
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
