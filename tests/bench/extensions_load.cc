// What extensions of the API take beside built-in types: custom resources beside ConfigMaps of the same size, many
// definitions at once, admission webhooks, and faulty extensions. Each part has a control plane of its own, an API server
// without controllers, so that none measures what another has left behind.
#include <algorithm>
#include <chrono>
#include <functional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "controlplane/apiserver/admission/webhook/testing/hook_server.h"
#include "lib/base/clock.h"
#include "tests/apiserver/cluster.h"
#include "tests/bench/extensions_faults.h"
#include "tests/bench/load.h"

namespace keelson {
namespace {

using bench::Json;

constexpr int kRounds = 4;
constexpr char kDefinitions[] = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

struct Options {
  int objects = 3000, workers = 16, lists = 60, definitions = 1000;
  std::vector<std::string> parts = {"objects", "webhook", "faults", "definitions"};
  bench::FaultOptions faults;
};

// A definition with a schema of about forty fields.
std::string Definition(const std::string& plural, const std::string& kind) {
  std::string fields;
  for (int i = 0; i < 38; ++i) {
    fields +=
        fmt::format(",'field{}':{{'type':'string','maxLength':64,'description':'what the field is for'}}", i);
  }
  return Json(fmt::format(
      "{{'apiVersion':'apiextensions.k8s.io/"
      "v1','kind':'CustomResourceDefinition','metadata':{{'name':'{0}.load."
      "example.com'}},'spec':{{'group':'load.example.com','scope':'Namespaced','names':{{'plural':'{0}','"
      "kind':'{1}'}},"
      "'versions':[{{'name':'v1','served':true,'storage':true,'schema':{{'openAPIV3Schema':{{'type':'object',"
      "'properties':{{'spec':{{'type':'object','properties':{{'a':{{'type':'string'}},'b':{{'type':'string'}}"
      "{2}}}}}}}}}}}}}]}}}}",
      plural, kind, fields));
}

class Load {
 public:
  Load(const Options& options, apiserver::TestCluster& cluster, const client::RestConfig& config,
       std::shared_ptr<client::Transport> transport)
      : options_(options),
        client_(config, {cluster.pid()}),
        transport_(std::move(transport)),
        port_(cluster.port()) {}

  Result<> Run(const std::string& part) const {
    if (part == "objects") return BesideBuiltIn();
    if (part == "webhook") return Webhook();
    if (part == "definitions") return Definitions();
    bench::FaultOptions faults = options_.faults;
    faults.port = port_;
    return bench::RunFaults(client_, *transport_, faults);
  }

 private:
  Result<> Send(const std::string& method, const std::string& path, const std::string& body = "") const {
    Result<std::string> sent = client_.Send(method, path, body);
    return sent ? Result<>() : sent.error();
  }
  Result<> Served(const std::string& path) const {
    const SteadyTime end = SteadyTime::clock::now() + std::chrono::seconds(60);
    while (true) {
      Result<std::string> got = client_.Send("GET", path);
      if (got) return {};
      if (SteadyTime::clock::now() > end) return got.error();
    }
  }

  struct Kind {
    std::string name, path, head, section;
    int filling = 300;  // bytes
  };
  static std::string Object(const Kind& kind, const std::string& name, const char* value) {
    return Json(fmt::format(
        "{{{},'metadata':{{'name':'{}','labels':{{'app':'load'}}}},'{}':{{'a':'{}','b':'{:{}}'}}}}",
        kind.head, name, kind.section, value, 'b', kind.filling));
  }
  // Fills objects of the first kind up to the size that those of the second have in a response.
  Result<> MakeSameSize(Kind& one, const Kind& other) const {
    size_t sizes[2] = {0, 0};
    for (int k = 0; k < 2; ++k) {
      const Kind& kind = k == 0 ? one : other;
      KEELSON_ASSIGN_OR_RETURN(const std::string made,
                               client_.Send("POST", kind.path, Object(kind, "sample", "1")));
      sizes[k] = made.size();
      KEELSON_RETURN_IF_ERROR(Send("DELETE", kind.path + "/sample"));
    }
    one.filling += static_cast<int>(sizes[1]) - static_cast<int>(sizes[0]);
    return {};
  }

  // Both kinds in turns, so that a slow moment of the machine meets both.
  Result<> BesideBuiltIn() const {
    KEELSON_RETURN_IF_ERROR(Send("POST", kDefinitions, Definition("loads", "Load")));
    KEELSON_RETURN_IF_ERROR(Served("/apis/load.example.com/v1/loads"));
    Kind kinds[] = {{"ConfigMap", "/api/v1/namespaces/default/configmaps",
                     "'apiVersion':'v1','kind':'ConfigMap'", "data"},
                    {"custom", "/apis/load.example.com/v1/namespaces/default/loads",
                     "'apiVersion':'load.example.com/v1','kind':'Load'", "spec"}};
    KEELSON_RETURN_IF_ERROR(MakeSameSize(kinds[0], kinds[1]));
    struct Verb {
      std::string name;
      int count, workers;
      std::function<http::ClientRequest(const Kind&, int)> make;
    };
    const Verb verbs[] = {
        {"create", options_.objects, options_.workers,
         [&](const Kind& kind, int i) {
           return client_.Request("POST", kind.path, Object(kind, fmt::format("c{}", i), "1"));
         }},
        {"get", options_.objects, options_.workers,
         [&](const Kind& kind, int i) {
           return client_.Request("GET", fmt::format("{}/c{}", kind.path, i), "");
         }},
        {"merge patch", options_.objects, options_.workers,
         [&](const Kind& kind, int i) {
           return client_.Request("PATCH", fmt::format("{}/c{}", kind.path, i),
                                  Json(fmt::format("{{'{}':{{'a':'2'}}}}", kind.section)),
                                  "application/merge-patch+json");
         }},
        {"list", options_.lists, 1,
         [&](const Kind& kind, int) { return client_.Request("GET", kind.path, ""); }},
        {"list from the cache", options_.lists, 1,
         [&](const Kind& kind, int) { return client_.Request("GET", kind.path + "?resourceVersion=0", ""); }},
    };
    for (const Verb& verb : verbs) {
      KEELSON_RETURN_IF_ERROR(Compare(verb.name, kinds, [&](const Kind& kind, int round) {
        const int part = verb.count / kRounds;
        return client_.MeasureRequests(verb.name + ", " + kind.name, part, verb.workers,
                                       [&](int i) { return verb.make(kind, round * part + i); });
      }));
    }
    return Compare("watch", kinds, [&](const Kind& kind, int) {
      return client_.Measure("first events of a watch, " + kind.name, options_.lists / kRounds, 1,
                             [&](int, int) { return ReadEvents(kind.path + "?watch=1&resourceVersion=0"); });
    });
  }

  // Calls `measure` for both kinds in turns, and prints how the second compares with the first.
  static Result<> Compare(const std::string& name, const Kind (&kinds)[2],
                          const std::function<Result<bench::Timing>(const Kind&, int round)>& measure) {
    double rates[2] = {0, 0}, cpu[2] = {0, 0};
    for (int round = 0; round < kRounds; ++round) {
      for (int k = 0; k < 2; ++k) {
        KEELSON_ASSIGN_OR_RETURN(const bench::Timing timing, measure(kinds[k], round));
        rates[k] += timing.per_second;
        cpu[k] += timing.cpu_seconds;
      }
    }
    fmt::print("{:<34} {:.2f} of a ConfigMap's rate, {:.2f} of the server's CPU\n", name, rates[1] / rates[0],
               cpu[1] / cpu[0]);
    return {};
  }

  // Reads a watch until it has brought every object.
  Result<size_t> ReadEvents(const std::string& path) const {
    client::ApiRequest request;
    request.target = path;
    request.accept = "application/json";
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<client::ApiStream> stream, transport_->Open(request, {}));
    size_t bytes = 0;
    for (long events = 0; events < options_.objects / kRounds * kRounds;) {
      KEELSON_ASSIGN_OR_RETURN(const std::string part, stream->Read({}, std::chrono::seconds(30)));
      if (part.empty()) return Error(Code::kUnavailable, "the watch has ended");
      bytes += part.size();
      events += std::count(part.begin(), part.end(), '\n');
    }
    return bytes;
  }

  // One validating webhook, beside the same requests without it and beside plain calls of the webhook.
  Result<> Webhook() const {
    apiserver::HookServer hooks;
    const std::string url = hooks.service().url();
    auto create = [&](const std::string& name, int first) {
      return client_.TimeRequests(name, options_.objects / 4, 1, [&](int i) {
        return client_.Request(
            "POST", "/api/v1/namespaces/default/secrets",
            Json(
                fmt::format("{{'apiVersion':'v1','kind':'Secret','metadata':{{'name':'s{}'}}}}", first + i)));
      });
    };
    KEELSON_ASSIGN_OR_RETURN(const double plain, create("create a Secret", 0));
    KEELSON_RETURN_IF_ERROR(Send("POST",
                                 "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                                 Json(fmt::format("{{'apiVersion':'admissionregistration.k8s.io/"
                                                  "v1','kind':'ValidatingWebhookConfiguration','metadata':{{"
                                                  "'name':'load'}},'webhooks':[{{'name':'load.example.com','"
                                                  "sideEffects':'None','admissionReviewVersions':["
                                                  "'v1'],'rules':[{{'operations':['CREATE'],'apiGroups':[''],"
                                                  "'apiVersions':['v1'],'resources':['secrets']}}],"
                                                  "'clientConfig':{{'url':'{}/ok','caBundle':'{}'}}}}]}}",
                                                  url, EncodeBase64(hooks.service().ca_pem())))));
    KEELSON_ASSIGN_OR_RETURN(const double hooked, create("create one through a webhook", 1'000'000));
    KEELSON_ASSIGN_OR_RETURN(const double alone, Calls(hooks));
    fmt::print("{:<34} {:.0f} us beyond its own round trip of {:.0f} us\n", "a validating webhook adds",
               1e6 / hooked - 1e6 / plain - 1e6 / alone, 1e6 / alone);
    return Send("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/load");
  }

  Result<double> Calls(const apiserver::HookServer& hooks) const {
    client::RestConfig config;
    config.server = hooks.service().url();
    config.ca_pem = hooks.service().ca_pem();
    const bench::LoadClient client(config, {});
    return client.TimeRequests("call the webhook alone", options_.objects / 4, 1, [&](int) {
      return client.Request("POST", "/ok",
                            Json("{'apiVersion':'admission.k8s.io/"
                                 "v1','kind':'AdmissionReview','request':{'uid':'1','object':{}}}"));
    });
  }

  Result<> Definitions() const {
    const double before = client_.servers().AnonymousMib();
    for (int wanted : {options_.definitions / 2, options_.definitions}) {
      const SteadyTime begin = SteadyTime::clock::now();
      const int first = wanted == options_.definitions ? options_.definitions / 2 : 0;
      KEELSON_RETURN_IF_ERROR(
          Rate(client_.TimeRequests("create definitions", wanted - first, options_.workers, [&](int i) {
            return client_.Request(
                "POST", kDefinitions,
                Definition(fmt::format("loads{}", first + i), fmt::format("Load{}", first + i)));
          })));
      for (int i = first; i < wanted; ++i) {
        KEELSON_RETURN_IF_ERROR(Served(fmt::format("/apis/load.example.com/v1/loads{}?limit=1", i)));
      }
      const double served = std::chrono::duration<double>(SteadyTime::clock::now() - begin).count();
      KEELSON_ASSIGN_OR_RETURN(const std::string open_api, client_.Send("GET", "/openapi/v2"));
      const bool published = open_api.find(fmt::format("loads{}", wanted - 1)) != std::string::npos;
      fmt::print("{:<34} {:.1f} s until the last of {} is served, {:.1f} s until it is {} OpenAPI\n",
                 "definitions", served, wanted - first,
                 std::chrono::duration<double>(SteadyTime::clock::now() - begin).count(),
                 published ? "in" : "NOT in");
      fmt::print("{:<34} {:.1f} MiB anonymous for {}, of {:.1f} before\n", "memory",
                 client_.servers().AnonymousMib() - before, wanted, before);
    }
    return {};
  }
  static Result<> Rate(const Result<double>& timed) { return timed ? Result<>() : timed.error(); }

  const Options options_;
  const bench::LoadClient client_;
  const std::shared_ptr<client::Transport> transport_;
  const int port_;
};

Result<> Measure(const Options& options, const std::string& part) {
  apiserver::TestCluster cluster({"--roles", "apiserver"});
  KEELSON_ASSIGN_OR_RETURN(const client::RestConfig config,
                           client::LoadKubeconfig(cluster.pki().dir() + "/admin.conf"));
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<client::Transport> transport, client::NewHttpTransport(config));
  return Load(options, cluster, config, std::move(transport)).Run(part);
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  using namespace keelson;
  Options options;
  CLI::App app{"Measures custom resources, their definitions and webhooks"};
  app.add_option("--objects", options.objects, "of each kind");
  app.add_option("--workers", options.workers, "requests under way at once");
  app.add_option("--lists", options.lists, "of each kind");
  app.add_option("--definitions", options.definitions, "in two halves");
  app.add_option("--faults", options.faults.only, "only those whose name has this part");
  app.add_option("--gets", options.faults.gets, "of each of three turns of a fault");
  app.add_option("--watchers", options.faults.watchers, "of the definition that is deleted");
  app.add_option("--watched", options.faults.objects, "objects of that definition");
  app.add_option("--parts", options.parts, "what to measure")
      ->check(CLI::IsMember({"objects", "webhook", "faults", "definitions"}));
  CLI11_PARSE(app, argc, argv);
  if (const std::string missing = apiserver::TestCluster::Missing(); !missing.empty()) {
    fmt::print(stderr, "extensions_load: {}\n", missing);
    return 1;
  }
  for (const std::string& part : options.parts) {
    if (Result<> done = Measure(options, part); !done) {
      fmt::print(stderr, "extensions_load: {}\n", done.error().message());
      return 1;
    }
  }
  return 0;
}
