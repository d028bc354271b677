// Ids made from titles: letters and digits with dashes between. Korean is written in Latin letters, syllable by syllable.

/** The longest id of a series. That of a contest may be longer. */
const ID_MAX = 51;

/** The letters of a syllable by the Revised Romanization: those that begin it, its vowels, those that end it. */
const BEGINS = "g,kk,n,d,tt,r,m,b,pp,s,ss,,j,jj,ch,k,t,p,h".split(",");
const VOWELS = "a,ae,ya,yae,eo,e,yeo,ye,o,wa,wae,oe,yo,u,wo,we,wi,yu,eu,ui,i".split(",");
const ENDS = ",k,k,k,n,n,n,t,l,k,m,l,l,l,p,l,m,p,p,t,t,ng,t,t,k,t,p,t".split(",");

function latin(syllable) {
  // Unicode numbers syllables by their letters, the last one fastest.
  const at = syllable.codePointAt(0) - 0xac00;
  const [begin, vowel, end] = [Math.floor(at / 588), Math.floor(at / 28) % 21, at % 28];
  return BEGINS[begin] + VOWELS[vowel] + ENDS[end];
}

/** The id that a title proposes; none for a title in another script that ids do not have. */
export function idOf(title) {
  const plain = title.normalize("NFC").replace(/[가-힣]/g, latin).normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  if (/(?![a-z])\p{L}/u.test(plain)) return "";
  return plain.replace(/[^a-z0-9]+/g, "-").replace(/^-/, "").slice(0, ID_MAX).replace(/-$/, "");
}
