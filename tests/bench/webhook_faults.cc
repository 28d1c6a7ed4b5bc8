// Admission and conversion webhooks that fail in one way each.
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "controlplane/apiserver/admission/webhook/testing/hook_server.h"
#include "lib/base/mutex.h"
#include "lib/crypto/testing/test_pki.h"
#include "lib/http/server/server.h"
#include "tests/bench/fault.h"

namespace keelson::bench {
namespace {

using std::chrono::milliseconds;

constexpr char kConfigurations[] = "/apis/admissionregistration.k8s.io/v1/";
constexpr milliseconds kHookTakes{700};
constexpr size_t kHuge = 9u << 20;

// Creates of Secrets that only the webhook for this label sees.
Call Create(std::string_view label, int round) {
  return {"POST", "/api/v1/namespaces/default/secrets?dryRun=All",
          fmt::format(
              "{{'apiVersion':'v1','kind':'Secret','metadata':{{'name':'s{}','labels':{{'hook':'{}'}}}}}}",
              round, label)};
}

std::string Hook(std::string_view label, std::string_view client) {
  return fmt::format(
      "{{'name':'{0}.example.com','sideEffects':'None','admissionReviewVersions':['v1'],'timeoutSeconds':1,"
      "'failurePolicy':'Fail','objectSelector':{{'matchLabels':{{'hook':'{0}'}}}},'rules':[{{'operations':"
      "['CREATE'],'apiGroups':[''],'apiVersions':['v1'],'resources':['secrets']}}],'clientConfig':{{{1}}}}}",
      label, client);
}

std::string Client(const std::string& url, const std::string& ca_pem) {
  return fmt::format("'url':'{}','caBundle':'{}'", url, EncodeBase64(ca_pem));
}

// The webhook that fails, and one that does not.
Fault Webhook(std::string name, const apiserver::HookServer& sound, const std::string& client,
              std::string_view kind = "Validating") {
  std::string resource =
      kind == "Validating" ? "validatingwebhookconfigurations" : "mutatingwebhookconfigurations";
  Fault fault;
  fault.name = std::move(name);
  fault.before = {
      {"POST", kConfigurations + resource,
       fmt::format(
           "{{'apiVersion':'admissionregistration.k8s.io/v1','kind':'{}WebhookConfiguration','metadata':"
           "{{'name':'faults'}},'webhooks':[{},{}]}}",
           kind, Hook("faulty", client),
           Hook("sound", Client(sound.service().url() + "/ok", sound.service().ca_pem())))}};
  fault.after = {{"DELETE", kConfigurations + resource + "/faults", ""}};
  fault.faulty = [](int round) { return Create("faulty", round); };
  fault.sound = [](int round) { return Create("sound", round); };
  return fault;
}

// Begins its responses and never ends them.
class EndlessServer {
 public:
  EndlessServer() {
    http::ServerOptions options;
    options.tls.emplace();
    options.tls->certificate_file = pki_.server_cert_file();
    options.tls->key_file = pki_.server_key_file();
    auto listening = http::Server::Listen(std::move(options), [this](auto, auto writer) { Begin(writer); });
    if (!listening) abort();
    server_ = std::move(*listening);
    thread_ = std::jthread([this](std::stop_token stop) { (void)server_->Run(std::move(stop), {}); });
  }
  std::string client() const {
    return Client(fmt::format("https://127.0.0.1:{}/endless", server_->port()), pki_.ca_pem());
  }

 private:
  void Begin(const std::shared_ptr<http::ResponseWriter>& writer) {
    writer->Start(200, {{"Content-Type", "application/json"}});
    writer->Write(std::make_shared<const std::string>(R"({"kind":"AdmissionReview",)"));
    MutexLock lock(mutex_);
    std::erase_if(kept_, [](const auto& one) { return one->closed(); });
    kept_.push_back(writer);
  }
  crypto::TestPki pki_;
  Mutex mutex_;
  std::vector<std::shared_ptr<http::ResponseWriter>> kept_ KEELSON_GUARDED_BY(mutex_);
  std::unique_ptr<http::Server> server_;
  std::jthread thread_;  // last: it uses the rest
};

// Converts all objects, but fails when there is one of this name.
constexpr std::string_view kStuck = "stuck";

apiserver::HttpsService::Answer Convert(const http::ServerRequest& request) {
  const boost::json::value review = boost::json::parse(request.body);
  const boost::json::object& asked = review.at("request").as_object();
  boost::json::object response = {{"uid", asked.at("uid")}, {"result", {{"status", "Success"}}}};
  boost::json::array converted;
  for (boost::json::value object : asked.at("objects").as_array()) {
    if (object.at("metadata").at("name").as_string() == kStuck) {
      response["result"] = {{"status", "Failure"}, {"message", "one object cannot be converted"}};
    }
    object.as_object()["apiVersion"] = asked.at("desiredAPIVersion");
    converted.push_back(std::move(object));
  }
  if (response["result"].at("status") == "Success") response["convertedObjects"] = std::move(converted);
  return {200, boost::json::serialize(boost::json::object{{"kind", "ConversionReview"},
                                                          {"apiVersion", "apiextensions.k8s.io/v1"},
                                                          {"response", response}})};
}

}  // namespace

FaultGroup WebhookFaults() {
  FaultGroup group;
  auto hooks = std::make_shared<apiserver::HookServer>();
  auto other = std::make_shared<apiserver::HookServer>();
  auto endless = std::make_shared<EndlessServer>();
  hooks->On("/slow", [](const boost::json::value&) {
    std::this_thread::sleep_for(kHookTakes);
    return std::string();
  });
  hooks->OnRaw("/malformed", {200, "no JSON"});
  hooks->OnRaw("/huge", {200, std::string(kHuge, ' ')});
  hooks->OnRaw("/uid", {200, R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",)"
                             R"("response":{"uid":"another","allowed":true}})"});
  hooks->On("/patch", [](const boost::json::value&) {
    return apiserver::HookServer::Patch(R"([{"op":"remove","path":"/metadata/missing"}])");
  });
  auto at = [&](const std::string& path) {
    return Client(hooks->service().url() + path, hooks->service().ca_pem());
  };
  group.faults.push_back(Webhook("a webhook is slow", *hooks, at("/slow")));
  group.faults.back().threads = 32;
  group.faults.back().period = kHookTakes;
  group.faults.push_back(
      Webhook("a webhook is dead", *hooks, Client("https://127.0.0.1:1/", hooks->service().ca_pem())));
  group.faults.push_back(Webhook("a webhook has a certificate of another CA", *hooks,
                                 Client(other->service().url() + "/ok", hooks->service().ca_pem())));
  // Certificates of Services have their names, which this one has not.
  const std::string url = hooks->service().url();
  Fault named =
      Webhook("a webhook has a certificate of another name", *hooks,
              fmt::format("'service':{{'namespace':'kube-system','name':'hook','port':{},'path':'/ok'}},"
                          "'caBundle':'{}'",
                          url.substr(url.rfind(':') + 1), EncodeBase64(hooks->service().ca_pem())));
  named.before.push_back({"POST", "/api/v1/namespaces/kube-system/services",
                          "{'apiVersion':'v1','kind':'Service','metadata':{'name':'hook'},'spec':{'type':"
                          "'ExternalName','externalName':'localhost'}}"});
  named.after.push_back({"DELETE", "/api/v1/namespaces/kube-system/services/hook", ""});
  group.faults.push_back(std::move(named));
  group.faults.push_back(Webhook("a webhook answers 9 MiB", *hooks, at("/huge")));
  group.faults.back().period = milliseconds(500);
  group.faults.push_back(Webhook("a webhook answers no JSON", *hooks, at("/malformed")));
  group.faults.push_back(Webhook("a webhook's answer has no end", *hooks, endless->client()));
  group.faults.back().threads = 32;
  group.faults.back().period = milliseconds(1000);
  group.faults.push_back(Webhook("a webhook answers for another UID", *hooks, at("/uid")));
  group.faults.push_back(Webhook("a webhook's patch does not apply", *hooks, at("/patch"), "Mutating"));
  group.servers = {hooks, other, endless};
  return group;
}

FaultGroup ConversionFaults() {
  FaultGroup group;
  auto server = std::make_shared<apiserver::HttpsService>(Convert);
  const std::string conversion = fmt::format(
      ",'conversion':{{'strategy':'Webhook','webhook':{{'conversionReviewVersions':['v1'],"
      "'clientConfig':{{{}}}}}}}",
      Client(server->url() + "/convert", server->ca_pem()));
  Fault fault;
  fault.name = "one object of a list cannot be converted";
  fault.before = {{"POST", kDefinitions, FaultDefinition("turns", "Turn", "", conversion)},
                  {"POST", kDefinitions, FaultDefinition("bends", "Bend", "", conversion)}};
  fault.wait_for = FaultCollection("bends");
  constexpr int kObjects = 50;
  fault.after = {{"DELETE", std::string(kDefinitions) + "/turns." + kFaultGroup, ""},
                 {"DELETE", std::string(kDefinitions) + "/bends." + kFaultGroup, ""}};
  fault.faulty = [](int) { return Call{"GET", FaultCollection("turns", "v2"), ""}; };
  fault.sound = [](int) { return Call{"GET", FaultCollection("bends", "v2"), ""}; };
  for (int i = 0; i < kObjects; ++i) {
    const std::string name = i == kObjects / 2 ? std::string(kStuck) : fmt::format("o{}", i);
    fault.objects.push_back(FaultObject("turns", "Turn", name, fmt::format("'a':'{:300}'", 'a')));
    fault.objects.push_back(
        FaultObject("bends", "Bend", fmt::format("o{}", i), fmt::format("'a':'{:300}'", 'a')));
  }
  group.faults.push_back(std::move(fault));
  group.servers = {server};
  return group;
}

}  // namespace keelson::bench
