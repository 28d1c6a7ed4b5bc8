// One thing that goes wrong with an extension of the API, and what its users send meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::bench {

struct Call {
  std::string method, path, body;  // a body has ' for "
};

struct Fault {
  std::string name;
  std::vector<Call> before, after;  // have to succeed
  std::string wait_for;             // a path that answers before the measurement begins; empty: none
  std::vector<Call> objects;        // made then; have to succeed
  std::function<void()> begin;      // then; may be empty
  std::function<Call(int round)> faulty;
  std::function<Call(int round)> sound;  // the same where nothing is wrong
  // So many threads send a call in each period, or as often as they get a response. Rounds of a thread have the same rest
  // when divided by kThreads.
  int threads = kThreads;
  std::chrono::milliseconds period{20};

  static constexpr int kThreads = 4;
};

// Faults and the servers that make them. The servers live as long as this.
struct FaultGroup {
  std::vector<Fault> faults;
  std::vector<std::shared_ptr<void>> servers;
};

FaultGroup WebhookFaults();
FaultGroup ConversionFaults();
FaultGroup DefinitionFaults();
// `port`: of the API server.
FaultGroup ExtensionServerFaults(int port);

// ---- what they share ----
inline constexpr char kDefinitions[] = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
inline constexpr char kFaultGroup[] = "faults.example.com";

// A definition PLURAL.faults.example.com with versions v1 and v2. `schema`: of both; empty: any fields. `more`: members of
// the spec.
std::string FaultDefinition(std::string_view plural, std::string_view kind, std::string_view schema = "",
                            std::string_view more = "", std::string_view scope = "Namespaced");
std::string FaultCollection(std::string_view plural, std::string_view version = "v1");
// POST of an object with these members of its spec.
Call FaultObject(std::string_view plural, std::string_view kind, std::string_view name,
                 std::string_view spec);

}  // namespace keelson::bench
