// Random Services and endpoints from a seed; deterministic.
#pragma once

#include <random>
#include <string>

#include "tests/netns/packet_table.h"

namespace keelson::netns {

class RandomServices {
 public:
  explicit RandomServices(uint32_t seed) : random_(seed) {}

  bool Chance(uint32_t of) { return random_() % of == 0; }

  // A Service for real packets, which take time.
  ServiceBlock Block(int number) {
    ServiceBlock out{
        .number = number, .name = "s" + std::to_string(number), .protocol = Chance(4) ? "udp" : "tcp"};
    for (const char* flag : {"nodeport", "external", "lb"}) {
      if (!Chance(3)) out.flags.push_back(flag);
    }
    for (const char* flag : {"internal-local", "external-local"}) {
      if (Chance(3)) out.flags.push_back(flag);
    }
    if (Chance(4)) out.flags.push_back(Chance(2) ? "ranges=outside,pods" : "ranges=others");
    for (const char* name : {"pod1", "pod2", "remote"}) AddEndpoint(name, out);
    return out;
  }

  // A Service with any features.
  ServiceBlock AnyBlock(int number) {
    ServiceBlock out = Block(number);
    if (Chance(6)) out.protocol = "sctp";
    if (Chance(4)) out.flags.push_back("sticky");
    if (Chance(3)) AddEndpoint("host", out);
    return out;
  }

 private:
  void AddEndpoint(const std::string& name, ServiceBlock& out) {
    if (Chance(2)) return;
    const char* states[] = {"", "", "", "!", "-"};
    std::string hint = Chance(3) ? (Chance(2) ? "@a" : "@b") : "";
    out.endpoints.push_back(name + std::string(states[random_() % 5]) + hint);
  }
  std::mt19937 random_;
};

}  // namespace keelson::netns
