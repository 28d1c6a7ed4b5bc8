#include "proxy/announce/responder.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "lib/base/log.h"
#include "proxy/announce/frames.h"

namespace keelson::proxy {
namespace {

using std::chrono::milliseconds;

// Frames are lost; who had the address before may still be heard of.
constexpr int kTimes = 5;
constexpr milliseconds kBetween{1000};
// Once in a while, for a part of the link that was cut off when the address came here.
constexpr milliseconds kReminder{60000};
constexpr int kFramesAtOnce = 64;

// What fails on one link concerns that link: it may be going away.
void Note(const char* what, const std::string& link, const Result<>& result) {
  if (!result) log::Warn(what, {{"link", link}, {"err", result.error()}});
}

}  // namespace

std::set<int> LinksFor(const IpAddress& address, const std::vector<netlink::Address>& own,
                       const std::vector<IpAddress>& node_ips) {
  std::set<int> near, of_node;
  for (const netlink::Address& one : own) {
    if (one.prefix.address() == address) return {};
    if (one.link_scope) continue;
    if (one.prefix.Contains(address)) near.insert(one.link_index);
    const bool is_node = std::find(node_ips.begin(), node_ips.end(), one.prefix.address()) != node_ips.end();
    if (is_node && one.prefix.is_v4() == address.is_v4()) of_node.insert(one.link_index);
  }
  return near.empty() ? of_node : near;
}

struct Responder::Place {
  struct Spoken {
    int left = kTimes;
    SteadyTime next;
  };
  netlink::Link link;
  std::optional<LinkSocket> arp, discovery;
  std::map<IpAddress, Spoken> spoken;

  LinkSocket* SocketFor(bool v4) {
    std::optional<LinkSocket>& socket = v4 ? arp : discovery;
    if (socket) return &*socket;
    Result<LinkSocket> opened = LinkSocket::Open(link, v4);
    if (!opened) {
      Note("Cannot speak for addresses", link.name, opened.error());
      return nullptr;
    }
    socket = *std::move(opened);
    return &*socket;
  }
};

Responder::Responder() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
Responder::~Responder() = default;

void Responder::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Responder::Speak(std::map<IpAddress, SteadyTime> addresses) {
  {
    MutexLock lock(mutex_);
    const bool same = addresses.size() == wanted_.size() &&
                      std::equal(addresses.begin(), addresses.end(), wanted_.begin(),
                                 [](const auto& a, const auto& b) { return a.first == b.first; }) &&
                      yielded_.empty();
    wanted_ = std::move(addresses);
    std::erase_if(yielded_, [&](const auto& one) KEELSON_REQUIRES(mutex_) {
      auto again = wanted_.find(one.first);
      return again == wanted_.end() || again->second > one.second;
    });
    changed_ = changed_ || !same;
    if (same) return;  // only the times are new: they are looked at when it matters
  }
  Wake();
}

void Responder::Rescan() {
  {
    MutexLock lock(mutex_);
    rescan_ = true;
  }
  Wake();
}

void Responder::SetNodeIps(std::vector<IpAddress> node_ips) {
  {
    MutexLock lock(mutex_);
    if (node_ips == node_ips_) return;
    node_ips_ = std::move(node_ips);
    rescan_ = true;
  }
  Wake();
}

std::set<IpAddress> Responder::Spoken() const {
  MutexLock lock(mutex_);
  std::set<IpAddress> out;
  for (const auto& [address, until] : wanted_) {
    if (!yielded_.contains(address)) out.insert(address);
  }
  return out;
}

void Responder::Scan(const std::vector<IpAddress>& node_ips) {
  Result<netlink::Socket> socket = netlink::Socket::Open();
  if (!socket) return Note("Cannot look at links", "", socket.error());
  auto links = netlink::ListLinks(*socket);
  auto own = netlink::ListAddresses(*socket);
  if (!links) return Note("Cannot look at links", "", links.error());
  if (!own) return Note("Cannot look at addresses", "", own.error());
  links_ = *std::move(links);
  own_ = *std::move(own);
  own_node_ips_ = node_ips;
  std::erase_if(links_, [](const netlink::Link& link) { return !link.up || link.loopback; });
  // A link that is another one now, or has another address, is begun anew.
  std::erase_if(places_, [&](const auto& place) {
    return std::none_of(links_.begin(), links_.end(), [&](const netlink::Link& link) {
      return link.index == place.first && link.name == place.second->link.name &&
             link.mac == place.second->link.mac;
    });
  });
}

void Responder::Settle() {
  std::set<IpAddress> wanted;
  std::optional<std::vector<IpAddress>> scan;
  {
    MutexLock lock(mutex_);
    if (!rescan_ && !changed_) return;
    for (const auto& [address, until] : wanted_) {
      if (!yielded_.contains(address)) wanted.insert(address);
    }
    if (rescan_) scan = node_ips_;
    rescan_ = changed_ = false;
  }
  if (scan) Scan(*scan);
  std::map<int, std::set<IpAddress>> by_link;
  for (const IpAddress& address : wanted) {
    for (int link : LinksFor(address, own_, own_node_ips_)) by_link[link].insert(address);
  }
  for (auto& [index, place] : places_) {
    const std::set<IpAddress>& stay = by_link[index];
    const netlink::Link& link = place->link;
    std::erase_if(place->spoken, [&](const auto& one) {
      if (stay.contains(one.first)) return false;
      log::Info("Speaks no more for an address", {{"address", one.first.ToString()}, {"link", link.name}});
      return true;
    });
    if (!place->spoken.empty()) continue;
    place->arp.reset();
    place->discovery.reset();
  }
  for (const netlink::Link& link : links_) {
    auto here = by_link.find(link.index);
    if (here == by_link.end()) continue;
    auto& place = places_[link.index];
    if (!place) place = std::make_unique<Place>();
    place->link = link;
    for (const IpAddress& address : here->second) {
      if (place->spoken.contains(address)) continue;
      LinkSocket* socket = place->SocketFor(address.is_v4());
      if (!socket) continue;
      if (address.is_v6()) {
        Note("Cannot hear who asks", link.name, socket->Join(SolicitedNodeAddress(address)));
      }
      place->spoken[address];
      log::Info("Speaks for an address", {{"address", address.ToString()}, {"link", link.name}});
    }
  }
}

// Sends what is due; for how long nothing will be, in milliseconds.
int Responder::Announce() {
  const SteadyTime now = Clock::Real().SteadyNow();
  SteadyTime next = now + kReminder;
  for (auto& [index, place] : places_) {
    for (auto& [address, state] : place->spoken) {
      if (state.next <= now) {
        for (bool request : {true, false}) {
          if (request && address.is_v6()) continue;
          LinkSocket* socket = place->SocketFor(address.is_v4());
          if (socket) {
            Note("Cannot announce an address", place->link.name,
                 socket->Send(Announcement(address, socket->mac(), request)));
          }
        }
        state.left -= state.left > 0;
        state.next = now + (state.left > 0 ? kBetween : kReminder);
      }
      next = std::min(next, state.next);
    }
  }
  return static_cast<int>(std::chrono::ceil<milliseconds>(next - now).count());
}

void Responder::Yield(const IpAddress& address, const netlink::MacAddress& to) {
  MutexLock lock(mutex_);
  auto ours = wanted_.find(address);
  if (ours == wanted_.end() || Clock::Real().SteadyNow() < ours->second) return;
  if (!yielded_.emplace(address, ours->second).second) return;
  changed_ = true;
  log::Warn("Another speaks for an address, whose Lease could not be renewed here",
            {{"address", address.ToString()}, {"mac", to.ToString()}});
}

void Responder::Listen(Place& place, LinkSocket& socket) {
  std::vector<std::string> frames;
  for (int i = 0; i < kFramesAtOnce; ++i) {
    Result<std::string> frame = socket.Receive();
    if (!frame) Note("Cannot hear neighbours", place.link.name, frame.error());
    if (!frame || frame->empty()) break;
    frames.push_back(*std::move(frame));
  }
  // After a sleep: first listen for a successor, then answer.
  for (const std::string& frame : frames) {
    auto claim = ParseClaim(frame);
    if (claim && claim->mac != socket.mac() && place.spoken.contains(claim->address)) {
      Yield(claim->address, claim->mac);
    }
  }
  for (const std::string& frame : frames) {
    auto question = ParseQuestion(frame);
    if (!question || !place.spoken.contains(question->target)) continue;
    {
      MutexLock lock(mutex_);
      if (!wanted_.contains(question->target) || yielded_.contains(question->target)) continue;
    }
    Note("Cannot answer a neighbour", place.link.name, socket.Send(AnswerTo(*question, socket.mac())));
  }
}

Result<> Responder::Run(std::stop_token stop) {
  if (!wake_) return Error(Code::kInternal, "no eventfd");
  std::stop_callback wake(stop, [this] { Wake(); });
  while (!stop.stop_requested()) {
    Settle();
    const int patience = Announce();
    std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
    std::vector<std::pair<Place*, LinkSocket*>> behind = {{nullptr, nullptr}};
    for (auto& [index, place] : places_) {
      for (std::optional<LinkSocket>* socket : {&place->arp, &place->discovery}) {
        if (!*socket) continue;
        polled.push_back({(*socket)->fd(), POLLIN, 0});
        behind.emplace_back(place.get(), &**socket);
      }
    }
    if (::poll(polled.data(), polled.size(), patience) < 0 && errno != EINTR) {
      return ErrnoError("poll packet sockets");
    }
    uint64_t count;
    [[maybe_unused]] ssize_t got = ::read(wake_.get(), &count, sizeof count);
    for (size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents) Listen(*behind[i].first, *behind[i].second);
    }
  }
  places_.clear();
  return {};
}

}  // namespace keelson::proxy
