// DNS messages from clients and other servers.
#include <sstream>
#include <vector>

#include "lib/api/types.h"
#include "proxy/dns/message/answer_addresses.h"
#include "proxy/dns/responder.h"
#include "proxy/dns/testing/messages.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

using namespace proxy::dns;

const char* const kService = "default/web";

std::shared_ptr<const Snapshot> MakeZone() {
  Zone zone = *Zone::Create({});
  corev1::Service service;
  service.mutable_spec()->set_type("ClusterIP");
  service.mutable_spec()->set_cluster_ip("10.96.0.10");
  auto& port = *service.mutable_spec()->add_ports();
  port.set_name("http");
  port.set_port(80);
  zone.UpdateService(kService, &service);
  return zone.Commit();
}

class FuzzAsker : public Asker {
 public:
  explicit FuzzAsker(bool tcp) : tcp_(tcp) {}
  bool tcp() const override { return tcp_; }
  bool v4() const override { return true; }
  std::function<void(std::string_view)> Later() override { std::abort(); }  // no resolver

 private:
  bool tcp_;
};

// Every answer is valid DNS within the size limit; answers get no answer.
void DnsQuery(std::string_view input) {
  static Responder* responder = [] {
    auto* out = new Responder(nullptr, Clock::Real());
    out->SetZone(MakeZone());
    return out;
  }();
  for (bool tcp : {false, true}) {
    FuzzAsker asker(tcp);
    std::vector<char> buffer(tcp ? kMaxTcpSize : kMaxUdpSize);
    size_t size = responder->Handle(input, asker, buffer);
    bool question = input.size() >= kHeaderSize && !(static_cast<uint8_t>(input[2]) & 0x80);
    FUZZ_CHECK((size > 0) == question, input);
    if (size == 0) continue;
    Decoded answer = Decode({buffer.data(), size});
    FUZZ_CHECK(answer.valid, input);
    // Clients without EDNS get at most 512 bytes.
    FUZZ_CHECK(tcp || answer.edns || size <= kMinUdpSize, input);
  }
}

// An accepted answer can be sent to any client.
void DnsAnswer(std::string_view input) {
  const Question question{*ParseName("www.example.com"), kTypeA};
  if (input.size() < 2) return;
  Result<StoredAnswer> stored = StoreAnswer(input, question, Get16(input, 0));
  if (!stored) return;
  for (bool edns : {false, true}) {
    std::string packet = QueryPacket("www.Example.com", kTypeA, {.edns = edns});
    Query query;
    Rcode rcode;
    FUZZ_CHECK(ParseQuery(packet, query, rcode) == Parsed::kQuery, input);
    std::vector<char> buffer(kMaxTcpSize);
    size_t size = WriteStored(*stored, query, std::chrono::seconds(5), buffer, query.Limit(false));
    FUZZ_CHECK(size <= query.Limit(false) && Decode({buffer.data(), size}).valid, input);
    AnswerWriter writer(query, buffer, query.Limit(false));
    std::deque<Name> names;
    FUZZ_CHECK(AppendStored(*stored, std::chrono::seconds(5), writer, names).has_value(), input);
    FUZZ_CHECK(Decode({buffer.data(), writer.Finish(stored->rcode, false)}).valid, input);
  }
}

// Network policies open what this finds: each address is a record of the answer as ldns reads it, and counts no longer.
void DnsAddresses(std::string_view input) {
  const AnswerAddresses found = AddressesIn(input);
  if (found.entries.empty()) return;
  FUZZ_CHECK(!found.name.empty() && found.name.size() <= kMaxNameSize && found.name.back() == '\0', input);
  const Decoded answer = Decode(input);
  if (!answer.valid) return;  // behind the answer's records there may be anything
  FUZZ_CHECK(answer.rcode == "NOERROR", input);
  for (const AnswerAddresses::Entry& entry : found.entries) {
    const std::string type = entry.address.is_v4() ? "A" : "AAAA", address = entry.address.ToString();
    bool there = false;
    for (const std::string& line : answer.answer) {
      std::istringstream words(line);
      std::string owner, of, data;
      int64_t ttl = 0;
      if (!(words >> owner >> ttl >> of >> data) || of != type) continue;
      const Result<IpAddress> parsed = IpAddress::Parse(data);
      there = there || (parsed && *parsed == entry.address && entry.ttl.count() <= ttl);
    }
    FUZZ_CHECK(there && entry.ttl.count() >= 0, input);
  }
}

const Registration kQuery("dns_query", DnsQuery), kAnswer("dns_answer", DnsAnswer),
    kAddresses("dns_addresses", DnsAddresses);

}  // namespace
}  // namespace keelson::fuzz
