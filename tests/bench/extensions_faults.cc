#include "tests/bench/extensions_faults.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/webhook/testing/hook_server.h"
#include "lib/base/base64.h"
#include "lib/base/clock.h"

namespace keelson::bench {
namespace {

using std::chrono::milliseconds;

constexpr char kDefinitions[] = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr char kHooks[] = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
constexpr char kApiServices[] = "/apis/apiregistration.k8s.io/v1/apiservices";
constexpr char kMap[] = "/api/v1/namespaces/default/configmaps/bystander";
constexpr milliseconds kHookTakes{700};

// Repeats an action from several threads, each every so often, until it is destroyed.
class Background {
 public:
  Background(int threads, milliseconds pause, std::function<void(int round)> act) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, pause, act, i](std::stop_token stop) {
        for (int round = i; !stop.stop_requested(); round += 1000) {
          act(round);
          std::unique_lock lock(mutex_);
          ended_.wait_for(lock, stop, pause, [] { return false; });
        }
      });
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::vector<std::jthread> threads_;
};

class Faults {
 public:
  Faults(const LoadClient& client, client::Transport& transport, const FaultOptions& options)
      : client_(client), transport_(transport), options_(options) {}

  Result<> Run() {
    KEELSON_RETURN_IF_ERROR(
        Send("POST", "/api/v1/namespaces/default/configmaps",
             "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'bystander'},'data':{'a':'b'}}"));
    KEELSON_RETURN_IF_ERROR(SlowWebhook());
    KEELSON_RETURN_IF_ERROR(FailingConversion());
    KEELSON_RETURN_IF_ERROR(ServerDown());
    KEELSON_RETURN_IF_ERROR(DeletedDefinition());
    return Send("DELETE", kMap);
  }

 private:
  Result<> Send(const std::string& method, const std::string& path, const std::string& body = "") const {
    Result<std::string> sent = client_.Send(method, path, Json(body));
    return sent ? Result<>() : sent.error();
  }
  // Requests that are meant to fail.
  void Try(const std::string& method, const std::string& path, const std::string& body = "") const {
    (void)client_.Send(method, path, Json(body));
  }
  Result<> Served(const std::string& path) const {
    const SteadyTime end = SteadyTime::clock::now() + std::chrono::seconds(30);
    for (;;) {
      Result<std::string> got = client_.Send("GET", path);
      if (got) return {};
      if (SteadyTime::clock::now() > end) return got.error();
    }
  }

  Result<double> P99(const std::string& name) const {
    KEELSON_ASSIGN_OR_RETURN(const Timing timing,
                             client_.MeasureRequests(name, options_.gets, options_.workers,
                                                     [&](int) { return client_.Request("GET", kMap, ""); }));
    return timing.p99_ms;
  }

  // In turns, so that a slow moment of the machine meets both.
  Result<> Compare(const std::string& name, const std::function<std::unique_ptr<Background>()>& fault) const {
    double without = 0, with = 0;
    for (int round = 0; round < 3; ++round) {
      KEELSON_ASSIGN_OR_RETURN(const double quiet, P99("get, nothing else"));
      const std::unique_ptr<Background> running = fault();
      KEELSON_ASSIGN_OR_RETURN(const double faulty, P99("get, " + name));
      without += quiet;
      with += faulty;
    }
    fmt::print("{:<34} p99 of a get is {:.2f} of what it is without\n", name, with / without);
    return {};
  }

  Result<> SlowWebhook() const {
    apiserver::HookServer hooks;
    hooks.On("/slow", [](const boost::json::value&) {
      std::this_thread::sleep_for(kHookTakes);
      return std::string();
    });
    KEELSON_RETURN_IF_ERROR(
        Send("POST", kHooks,
             fmt::format(
                 "{{'apiVersion':'admissionregistration.k8s.io/v1','kind':'ValidatingWebhookConfiguration',"
                 "'metadata':{{'name':'slow'}},'webhooks':[{{'name':'slow.example.com','sideEffects':'None',"
                 "'admissionReviewVersions':['v1'],'timeoutSeconds':1,'failurePolicy':'Fail','rules':[{{'"
                 "operations':"
                 "['CREATE'],'apiGroups':[''],'apiVersions':['v1'],'resources':['secrets']}}],"
                 "'clientConfig':{{'url':'{}/slow','caBundle':'{}'}}}}]}}",
                 hooks.service().url(), EncodeBase64(hooks.service().ca_pem()))));
    KEELSON_RETURN_IF_ERROR(Compare("a slow webhook", [&] {
      return std::make_unique<Background>(32, milliseconds(1), [this](int round) {
        Try("POST", "/api/v1/namespaces/default/secrets?dryRun=All",
            fmt::format("{{'apiVersion':'v1','kind':'Secret','metadata':{{'name':'slow{}'}}}}", round));
      });
    }));
    return Send("DELETE", std::string(kHooks) + "/slow");
  }

  std::string Definition(const std::string& plural, const std::string& kind,
                         const std::string& more = "") const {
    constexpr char kSchema[] =
        "'schema':{'openAPIV3Schema':{'type':'object','x-kubernetes-preserve-unknown-fields':true}}";
    return fmt::format(
        "{{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{{'name':"
        "'{0}.faults.example.com'}},'spec':{{'group':'faults.example.com','scope':'Namespaced','names':"
        "{{'plural':'{0}','kind':'{1}'}},'versions':[{{'name':'v1','served':true,'storage':true,{2}}},"
        "{{'name':'v2','served':true,'storage':false,{2}}}]{3}}}}}",
        plural, kind, kSchema, more);
  }
  static std::string Collection(const std::string& plural, const char* version = "v1") {
    return fmt::format("/apis/faults.example.com/{}/namespaces/default/{}", version, plural);
  }
  Result<> Create(const std::string& plural, const std::string& kind, int count) const {
    const Result<Timing> made =
        client_.MeasureRequests("create " + plural, count, options_.workers, [&](int i) {
          return client_.Request(
              "POST", Collection(plural),
              Json(fmt::format(
                  "{{'apiVersion':'faults.example.com/v1','kind':'{}','metadata':{{'name':'o{}'}},"
                  "'spec':{{'a':'{:300}'}}}}",
                  kind, i, 'a')));
        });
    return made ? Result<>() : made.error();
  }

  Result<> FailingConversion() const {
    apiserver::HookServer hooks;
    hooks.OnRaw("/convert", {500, "out of order"});
    KEELSON_RETURN_IF_ERROR(Send(
        "POST", kDefinitions,
        Definition("turns", "Turn",
                   fmt::format(",'conversion':{{'strategy':'Webhook','webhook':{{'conversionReviewVersions':"
                               "['v1'],'clientConfig':{{'url':'{}/convert','caBundle':'{}'}}}}}}",
                               hooks.service().url(), EncodeBase64(hooks.service().ca_pem())))));
    KEELSON_RETURN_IF_ERROR(Served(Collection("turns")));
    KEELSON_RETURN_IF_ERROR(Create("turns", "Turn", 50));
    KEELSON_RETURN_IF_ERROR(Compare("a failing conversion webhook", [&] {
      return std::make_unique<Background>(4, milliseconds(20),
                                          [this](int) { Try("GET", Collection("turns", "v2")); });
    }));
    return Send("DELETE", std::string(kDefinitions) + "/turns.faults.example.com");
  }

  Result<> ServerDown() const {
    KEELSON_RETURN_IF_ERROR(
        Send("POST", "/api/v1/namespaces/default/services",
             "{'apiVersion':'v1','kind':'Service','metadata':{'name':'down'},'spec':{'type':'ExternalName',"
             "'externalName':'localhost'}}"));
    KEELSON_RETURN_IF_ERROR(Send(
        "POST", kApiServices,
        "{'apiVersion':'apiregistration.k8s.io/v1','kind':'APIService','metadata':{'name':"
        "'v1.down.example.com'},'spec':{'group':'down.example.com','version':'v1','groupPriorityMinimum':"
        "1000,'versionPriority':10,'insecureSkipTLSVerify':true,'service':{'namespace':'default','name':"
        "'down','port':1}}}"));
    KEELSON_RETURN_IF_ERROR(Compare("an extension server is down", [&] {
      return std::make_unique<Background>(4, milliseconds(20), [this](int) {
        Try("GET", "/apis/down.example.com/v1/things");
        Try("GET", "/apis");
      });
    }));
    KEELSON_RETURN_IF_ERROR(Send("DELETE", std::string(kApiServices) + "/v1.down.example.com"));
    return Send("DELETE", "/api/v1/namespaces/default/services/down");
  }

  // Once: the definition goes in the course of one measurement. No thread waits for the watches.
  Result<> DeletedDefinition() const {
    KEELSON_RETURN_IF_ERROR(Send("POST", kDefinitions, Definition("goners", "Goner")));
    KEELSON_RETURN_IF_ERROR(Served(Collection("goners")));
    KEELSON_RETURN_IF_ERROR(Create("goners", "Goner", options_.objects));
    KEELSON_ASSIGN_OR_RETURN(const double without, P99("get, nothing else"));
    std::vector<std::unique_ptr<client::ApiStream>> watches;
    for (int i = 0; i < options_.watchers; ++i) {
      client::ApiRequest request;
      request.target = Collection("goners") + "?watch=1";
      request.accept = "application/json";
      KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<client::ApiStream> stream, transport_.Open(request, {}));
      watches.push_back(std::move(stream));
    }
    const SteadyTime begin = SteadyTime::clock::now();
    KEELSON_RETURN_IF_ERROR(Send("DELETE", std::string(kDefinitions) + "/goners.faults.example.com"));
    KEELSON_ASSIGN_OR_RETURN(const double with, P99("get, a definition goes"));
    fmt::print("{:<34} p99 of a get is {:.2f} of what it is without\n", "a definition with watchers goes",
               with / without);
    for (const auto& watch : watches) KEELSON_RETURN_IF_ERROR(AwaitEnd(*watch));
    fmt::print("{:<34} {:.1f} s until the last of {} watches has told of {} objects and has ended\n",
               "watches", std::chrono::duration<double>(SteadyTime::clock::now() - begin).count(),
               watches.size(), options_.objects);
    return {};
  }

  // Reads a watch that tells of every object, then that it is deleted, and then ends without an error.
  Result<> AwaitEnd(client::ApiStream& watch) const {
    std::string text;
    for (std::string piece = " "; !piece.empty(); text += piece) {
      KEELSON_ASSIGN_OR_RETURN(piece, watch.Read({}, std::chrono::seconds(60)));
    }
    int deleted = 0;
    constexpr std::string_view kDeleted = R"({"type":"DELETED")";
    for (size_t at = text.find(kDeleted); at != text.npos; at = text.find(kDeleted, at + 1)) ++deleted;
    if (deleted == options_.objects && text.find(R"({"type":"ERROR")") == text.npos) return {};
    return Error(Code::kInternal,
                 fmt::format("a watch has ended after {} of {} deletions: {}", deleted, options_.objects,
                             text.substr(text.size() - std::min<size_t>(text.size(), 300))));
  }

  const LoadClient& client_;
  client::Transport& transport_;
  const FaultOptions options_;
};

}  // namespace

Result<> RunFaults(const LoadClient& client, client::Transport& transport, const FaultOptions& options) {
  return Faults(client, transport, options).Run();
}

}  // namespace keelson::bench
