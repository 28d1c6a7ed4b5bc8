#include "tests/netns/service_world.h"

#include <cerrno>
#include <cstdlib>

namespace keelson::netns {
namespace {

constexpr std::chrono::milliseconds kSilence{250};
constexpr int kStickyTries = 6;

std::string Join(const std::set<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace

Result<std::unique_ptr<ServiceWorld>> ServiceWorld::Make() {
  auto out = std::make_unique<ServiceWorld>();
  KEELSON_ASSIGN_OR_RETURN(out->world_, proxy::World::Make());
  for (const char* name : {"pod1", "pod2", "remote", "host"}) {
    out->responders_.push_back(std::make_unique<Responder>(name, out->Place(name), kEndpointPort));
  }
  KEELSON_RETURN_IF_ERROR(out->AwaitLinks());
  return out;
}

// New links take time for neighbor discovery: every place must reach the node, and the node every endpoint.
Result<> ServiceWorld::AwaitLinks() const {
  const std::pair<const char*, const char*> ways[] = {
      {"pod1", "host"},     {"pod2", "host"}, {"remote", "host"}, {"outside", "host"},
      {"stranger", "host"}, {"node", "pod1"}, {"node", "pod2"},   {"node", "remote"}};
  for (bool v4 : {true, false}) {
    for (const auto& [client, endpoint] : ways) {
      Question question = From(client, v4);
      question.to = EndpointAddress(endpoint, v4);
      question.port = kEndpointPort;
      Result<Answer> answer = Ask(Place(client), question);
      for (int again = 0; !answer && again < 10; ++again) answer = Ask(Place(client), question);
      if (!answer) return answer.error().Wrap(std::string(client) + " to " + endpoint);
    }
  }
  return {};
}

const linux::NetNs& ServiceWorld::Place(const std::string& client) const {
  if (client == "pod1") return world_->pod1;
  if (client == "pod2") return world_->pod2;
  if (client == "remote") return world_->remote;
  return client == "node" || client == "host" ? world_->node : world_->client;
}

Result<NodePlaces> ServiceWorld::Places() {
  if (!machine_) {
    KEELSON_ASSIGN_OR_RETURN(machine_, NodeMachine::Make());
  }
  return machine_->places();
}

Result<std::unique_ptr<ServicePlane>> ServiceWorld::Start(PlaneOptions options) {
  NodePlaces places;
  if (options.mode == "ebpf") {
    KEELSON_ASSIGN_OR_RETURN(places, Places());
  }
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<ServicePlane> plane, MakePlane(world_->node, options, places));
  plane->SetNodeIps({ClientAddress("node", options.v4)});
  plane->SetServiceCidrs({*IpPrefix::Parse(options.v4 ? "10.96.0.0/16" : "fd96::/108")});
  return plane;
}

void ServiceWorld::Become(const std::string& client) const {
  const bool node = client == "pod1" || client == "pod2" || client == "node";
  if (machine_ && !machine_->Enter(node)) std::abort();
}

Question ServiceWorld::From(const std::string& client, bool v4) const {
  Question out;
  if (client != "node") out.source = ClientAddress(client, v4);
  return out;
}

std::string ServiceWorld::CheckVerdict(const linux::NetNs& place, const Question& question,
                                       const std::string& verdict) const {
  Question once = question;
  if (verdict != "refused") once.limit = kSilence;
  Result<Answer> answer = Ask(place, once);
  if (answer) return answer->server + " answers, not " + verdict;
  int error = answer.error().errnum();
  // What a machine sends itself fails in send(), before the refusal comes back; but for TCP.
  const bool unsent = question.protocol != proxy::kTcp && !question.source && error == EPERM;
  if (verdict == "refused" && error != ECONNREFUSED && !unsent) {
    return answer.error().message() + ", not refused";
  }
  if (verdict == "dropped" && error != ETIMEDOUT && error != EPERM) {
    return answer.error().message() + ", not dropped";
  }
  return "";
}

std::string ServiceWorld::Check(const std::string& client, Question question,
                                const std::vector<std::string>& answers, PacketCase::Seen seen,
                                bool sticky) const {
  const linux::NetNs& place = Place(client);
  Become(client);
  if (answers.size() == 1 && (answers[0] == "refused" || answers[0] == "dropped" || answers[0] == "nobody")) {
    return CheckVerdict(place, question, answers[0]);
  }
  const std::set<std::string> expected(answers.begin(), answers.end());
  const std::string self = ClientAddress(client, question.to.is_v4()).ToString();
  std::set<std::string> got;
  // The chance to miss one of n in all tries is e^-16.
  const int tries = sticky ? kStickyTries : 16 * static_cast<int>(expected.size());
  for (int i = 0; i < tries && (sticky || got != expected); ++i) {
    Result<Answer> answer = Ask(place, question);
    if (!answer) return answer.error().message();
    if (!expected.contains(answer->server)) return answer->server + " answers, not " + Join(expected);
    got.insert(answer->server);
    // A hairpin connection must go through the node.
    const bool keeps = answer->seen_as == self, to_itself = answer->server == client;
    if (!to_itself && ((seen == PacketCase::kKeep && !keeps) || (seen == PacketCase::kMasq && keeps))) {
      return answer->server + " sees " + answer->seen_as;
    }
  }
  if (sticky) return got.size() == 1 ? "" : Join(got) + " answer, not one of them";
  return got == expected ? "" : Join(got) + " answer, not " + Join(expected);
}

}  // namespace keelson::netns
