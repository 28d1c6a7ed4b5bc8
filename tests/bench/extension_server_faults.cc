// Extension API servers that are away, that are slow, and that lead back to the API server.
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "controlplane/apiserver/testing/https_service.h"
#include "tests/bench/fault.h"

namespace keelson::bench {
namespace {

using std::chrono::milliseconds;

constexpr char kApiServices[] = "/apis/apiregistration.k8s.io/v1/apiservices";
constexpr char kServices[] = "/api/v1/namespaces/default/services";
constexpr milliseconds kSlowTakes{700};

std::string PortOf(const std::string& url) { return url.substr(url.rfind(':') + 1); }

std::shared_ptr<apiserver::HttpsService> Server() {
  return std::make_shared<apiserver::HttpsService>([](const http::ServerRequest& request) {
    if (request.path.ends_with("/slow")) std::this_thread::sleep_for(kSlowTakes);
    return apiserver::HttpsService::Answer{
        200,
        R"({"kind":"APIResourceList","apiVersion":"v1","groupVersion":"any.example.com/v1","resources":[]})"};
  });
}

// The server at this port answers for NAME.example.com, and another one for sound.example.com.
Fault Extension(std::string what, const std::string& name, const std::string& port,
                const std::string& sound_port) {
  auto service = [](const std::string& group, const std::string& at) {
    return Call{
        "POST", kApiServices,
        fmt::format("{{'apiVersion':'apiregistration.k8s.io/v1','kind':'APIService','metadata':{{'name':"
                    "'v1.{0}.example.com'}},'spec':{{'group':'{0}.example.com','version':'v1',"
                    "'groupPriorityMinimum':1000,'versionPriority':10,'insecureSkipTLSVerify':true,"
                    "'service':{{'namespace':'default','name':'here','port':{1}}}}}}}",
                    group, at)};
  };
  Fault fault;
  fault.name = std::move(what);
  fault.before = {
      {"POST", kServices,
       "{'apiVersion':'v1','kind':'Service','metadata':{'name':'here'},'spec':{'type':'ExternalName',"
       "'externalName':'localhost'}}"},
      service(name, port),
      service("sound", sound_port)};
  fault.after = {{"DELETE", fmt::format("{}/v1.{}.example.com", kApiServices, name), ""},
                 {"DELETE", std::string(kApiServices) + "/v1.sound.example.com", ""},
                 {"DELETE", std::string(kServices) + "/here", ""}};
  fault.wait_for = "/apis/sound.example.com/v1/things";
  auto get = [](const std::string& group, int round, const char* resource) {
    // Every other thread reads discovery.
    return Call{"GET", round % 2 == 0 ? "/apis" : fmt::format("/apis/{}.example.com/v1/{}", group, resource),
                ""};
  };
  const char* resource = name == "slow" ? "slow" : "things";
  fault.faulty = [=](int round) { return get(name, round, resource); };
  fault.sound = [=](int round) { return get("sound", round, "things"); };
  return fault;
}

}  // namespace

FaultGroup ExtensionServerFaults(int port) {
  FaultGroup group;
  auto sound = Server(), slow = Server();
  auto doomed = std::make_shared<std::shared_ptr<apiserver::HttpsService>>(Server());
  const std::string sound_port = PortOf(sound->url());
  group.faults.push_back(Extension("an extension server is known to be down", "down", "1", sound_port));
  Fault died = Extension("an extension server has just died", "died", PortOf((*doomed)->url()), sound_port);
  died.wait_for = "/apis/died.example.com/v1/things";
  died.begin = [doomed] { doomed->reset(); };
  group.faults.push_back(std::move(died));
  Fault late = Extension("an extension server is slow", "slow", PortOf(slow->url()), sound_port);
  late.wait_for = "/apis/slow.example.com/v1/things";
  late.threads = 32;
  late.period = kSlowTakes;
  group.faults.push_back(std::move(late));
  group.faults.push_back(
      Extension("an APIService leads back to the API server", "back", std::to_string(port), sound_port));
  group.servers = {sound, slow};
  return group;
}

}  // namespace keelson::bench
