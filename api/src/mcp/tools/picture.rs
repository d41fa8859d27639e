//! Pictures of screens, made small enough for clients and models.

use std::io::Cursor;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::webp::WebPEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, GenericImageView, ImageFormat, ImageReader, Limits};
use moka::sync::Cache;
use schema::ids::Uid;
use schema::under_way::track_call;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::turn::Stop;
use crate::limits::{PICTURE_USERS, PICTURES};

/// Longest edge, in pixels, if nothing else is asked for: more is of no use to models.
pub(super) const EDGE: u32 = 1568;
/// Longest edge of a picture that is read at all, in pixels.
const LARGEST: u32 = 16_384;
/// Most pixels of a picture that is read at all.
const PIXELS: u64 = 24_000_000;
/// Most memory that decoding one picture may take, in bytes: what comes of it takes up to three times as much.
const MEMORY: u64 = 128 * 1024 * 1024;
/// Characters of base64 in which the size of a picture is looked for, at first and at most, and memory that this may take, in bytes:
/// there may be something packed before it.
const HEADS: [usize; 2] = [4 * 1024, 256 * 1024];
const MEMORY_OF_HEAD: u64 = 1024 * 1024;
/// Most bytes of a picture.
const MOST: usize = 1_000_000;
/// The qualities that are tried one after the other until a picture is small enough.
const QUALITIES: [u8; 2] = [80, 60];
/// Those that are tried before a picture that must keep its size is given up.
const LOW_QUALITIES: [u8; 2] = [40, 20];
/// Time for which the place of a user is remembered.
const KEPT: Duration = Duration::from_secs(600);

static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| PICTURES.semaphore());
/// One place for each user, so that nobody's pictures take them all.
static OF_USERS: LazyLock<Cache<Uid, Arc<Semaphore>>> =
    LazyLock::new(|| PICTURE_USERS.cache().time_to_idle(KEPT).build());

/// How a picture is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    Png,
    Jpeg,
    Webp,
}

/// A part of a picture, in its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// What is wanted of a picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) region: Option<Region>,
    /// Its longest edge, in pixels.
    pub(super) edge: u32,
    /// Its greatest width, in pixels.
    pub(super) width: Option<u32>,
    pub(super) format: Option<Format>,
    pub(super) quality: Option<u8>,
    /// Most characters of base64.
    pub(super) most: usize,
    /// It must not get smaller than that: places are read in it.
    pub(super) exact: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            region: None,
            edge: EDGE,
            width: None,
            format: None,
            quality: None,
            most: MOST.div_ceil(3) * 4,
            exact: false,
        }
    }
}

/// A picture as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picture {
    /// In base64.
    pub(super) data: String,
    pub(super) mime: String,
    /// In pixels.
    pub(super) width: u32,
    pub(super) height: u32,
    /// What the executor's picture had.
    pub(super) whole: (u32, u32),
}

/// Makes of a picture, which is in base64, what is wanted. One that is so already stays as it is.
///
/// # Errors
/// When it cannot be read.
pub(super) async fn fit(user: &Uid, data: String, wanted: Wanted) -> Result<Picture, Stop> {
    let of_user = OF_USERS.get_with_by_ref(user, || PICTURES.semaphore_of_one());
    // They are never closed.
    let of_user = of_user.acquire_owned().await;
    let place = Arc::clone(&PLACES).acquire_owned().await;
    let work = track_call("a picture", move || {
        // Nobody stops what has begun, also when nobody waits for it any more.
        let _places = (of_user, place);
        make(data, &wanted)
    });
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(unreadable()))
}

/// The width of a picture, which is in base64, in pixels.
///
/// # Errors
/// When it cannot be read.
pub(super) fn width(data: &str) -> Result<u32, Stop> {
    let about = about_beginning(data).ok_or_else(unreadable)?;
    Some(about.size.0)
        .filter(|width| *width > 0)
        .ok_or_else(unreadable)
}

/// What a picture says of itself.
#[derive(Debug, Clone, Copy)]
struct About {
    format: ImageFormat,
    /// In pixels.
    size: (u32, u32),
}

/// What a picture says of itself, which is in base64, if it says so near its beginning.
fn about_beginning(data: &str) -> Option<About> {
    HEADS.iter().find_map(|head| {
        let head = data.get(..*head.min(&(data.len() / 4 * 4)))?;
        about(&STANDARD.decode(head).ok()?, MEMORY_OF_HEAD)
    })
}

fn about(bytes: &[u8], memory: u64) -> Option<About> {
    let reader = reader(bytes, memory)?;
    let format = reader.format()?;
    let size = reader.into_dimensions().ok()?;
    Some(About { format, size })
}

/// Whether a text is base64 from beginning to end, which takes a fraction of decoding it.
fn is_base64(text: &str) -> bool {
    // What is special stands at the end.
    let Some((digits, end)) = text.split_at_checked(text.len().saturating_sub(4)) else {
        return false;
    };
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() | matches!(byte, b'+' | b'/');
    // No end before the last one, so that many are looked at together.
    let all = digits.bytes().fold(true, |all, byte| all & is_digit(byte));
    all && text.len().is_multiple_of(4) && STANDARD.decode(end).is_ok()
}

/// What reads a picture, and takes no more memory for that.
fn reader(bytes: &[u8], memory: u64) -> Option<ImageReader<Cursor<&[u8]>>> {
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let mut reader = reader.ok()?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(LARGEST);
    limits.max_image_height = Some(LARGEST);
    limits.max_alloc = Some(memory);
    reader.limits(limits);
    Some(reader)
}

fn unreadable() -> Stop {
    Stop::said("the picture cannot be read")
}

fn make(data: String, wanted: &Wanted) -> Result<Picture, Stop> {
    let decoded = || STANDARD.decode(&data).map_err(|_| unreadable());
    let about = match about_beginning(&data).filter(|_| is_base64(&data)) {
        Some(about) => about,
        None => about(&decoded()?, MEMORY).ok_or_else(unreadable)?,
    };
    let whole = about.size;
    if u64::from(whole.0) * u64::from(whole.1) > PIXELS {
        return Err(Stop::said(format!(
            "the picture has {}x{} pixels, which is more than {PIXELS}",
            whole.0, whole.1
        )));
    }
    if wanted.region.is_none()
        && size(whole, wanted) == whole
        && wanted.quality.is_none()
        && wanted.format.is_none_or(|wanted| wanted.is(about.format))
        && data.len() <= wanted.most
    {
        return Ok(Picture {
            data,
            mime: about.format.to_mime_type().to_owned(),
            width: whole.0,
            height: whole.1,
            whole,
        });
    }
    let bytes = decoded()?;
    let picture = reader(&bytes, MEMORY).ok_or_else(unreadable)?.decode();
    let mut picture = picture.map_err(|_| unreadable())?;
    if let Some(region) = wanted.region {
        picture = cropped(&picture, region)?;
    }
    let mut target = size(picture.dimensions(), wanted);
    if target != picture.dimensions() {
        picture = picture.resize_exact(target.0, target.1, FilterType::Triangle);
    }
    loop {
        for (data, mime) in written(&picture, wanted)? {
            if data.len() <= wanted.most {
                return Ok(Picture {
                    data,
                    mime: mime.to_owned(),
                    width: target.0,
                    height: target.1,
                    whole,
                });
            }
        }
        if wanted.exact {
            return Err(Stop::said(
                "the picture cannot be made small enough without another size, in which places would be wrong; \
                 use computer_screenshot",
            ));
        }
        target = (target.0.div_ceil(2), target.1.div_ceil(2));
        if target.0.max(target.1) < 16 {
            return Err(Stop::said("the picture cannot be made small enough"));
        }
        picture = picture.resize_exact(target.0, target.1, FilterType::Triangle);
    }
}

impl Format {
    fn is(self, format: ImageFormat) -> bool {
        match self {
            Self::Png => format == ImageFormat::Png,
            Self::Jpeg => format == ImageFormat::Jpeg,
            Self::Webp => format == ImageFormat::WebP,
        }
    }
}

/// The size that a picture of this one gets.
fn size((width, height): (u32, u32), wanted: &Wanted) -> (u32, u32) {
    let within = |most: u32, length: u32| f64::from(most) / f64::from(length.max(1));
    let edge = match wanted.width {
        // Whoever says a width knows what is good for them; the height is bounded, too.
        Some(most) => within(most, width).min(within(most.max(wanted.edge), height)),
        None => within(wanted.edge, width.max(height)),
    };
    if edge >= 1.0 {
        return (width, height);
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Less than what it was.
    let scaled = |length: u32| ((f64::from(length) * edge).round() as u32).max(1);
    (scaled(width), scaled(height))
}

fn cropped(picture: &DynamicImage, region: Region) -> Result<DynamicImage, Stop> {
    let (width, height) = picture.dimensions();
    if region.x >= width || region.y >= height || region.width == 0 || region.height == 0 {
        return Err(Stop::said(format!(
            "region: nothing of it is in the picture, which is {width}x{height}"
        )));
    }
    let to = (width - region.x, height - region.y);
    Ok(picture.crop_imm(
        region.x,
        region.y,
        region.width.min(to.0),
        region.height.min(to.1),
    ))
}

/// The ways in which a picture may be written, the better one first. They are made when they are needed.
fn written<'a>(
    picture: &'a DynamicImage,
    wanted: &Wanted,
) -> Result<impl Iterator<Item = (String, &'static str)> + use<'a>, Stop> {
    let exact = match wanted.format {
        Some(Format::Png) => Some(("image/png", lossless(picture, Format::Png)?)),
        Some(Format::Webp) => Some(("image/webp", lossless(picture, Format::Webp)?)),
        Some(Format::Jpeg) | None => None,
    };
    let exact = exact.map(|(mime, bytes)| (STANDARD.encode(bytes), mime));
    let asked = wanted.quality.into_iter();
    let low = wanted.exact.then_some(LOW_QUALITIES).into_iter().flatten();
    let lower = QUALITIES.into_iter().chain(low).filter({
        let asked = wanted.quality;
        move |it| asked.is_none_or(|asked| *it < asked)
    });
    let rgb = picture.to_rgb8();
    let jpegs = asked.chain(lower).filter_map(move |quality| {
        let mut bytes = Vec::new();
        JpegEncoder::new_with_quality(&mut bytes, quality)
            .encode_image(&rgb)
            .ok()?;
        Some((STANDARD.encode(bytes), "image/jpeg"))
    });
    Ok(exact.into_iter().chain(jpegs))
}

fn lossless(picture: &DynamicImage, format: Format) -> Result<Vec<u8>, Stop> {
    let mut bytes = Vec::new();
    let written = match format {
        Format::Webp => {
            let encoder = WebPEncoder::new_lossless(&mut bytes);
            picture.to_rgba8().write_with_encoder(encoder)
        }
        _ => picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png),
    };
    written.map_err(|_| Stop::said("the picture cannot be written"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use image::{ImageDecoder, ImageEncoder, RgbImage};

    use super::*;

    /// A picture that nothing makes smaller.
    fn noise(width: u32, height: u32) -> String {
        let mut state = 1_u32;
        let picture = RgbImage::from_fn(width, height, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [a, b, c, _] = state.to_be_bytes();
            image::Rgb([a, b, c])
        });
        written_as_png(&DynamicImage::from(picture))
    }

    fn written_as_png(picture: &DynamicImage) -> String {
        STANDARD.encode(lossless(picture, Format::Png).unwrap())
    }

    #[test]
    fn what_is_packed_before_a_picture_is_not_unpacked_beyond_a_limit() {
        let mut bytes = Vec::new();
        let mut encoder = image::codecs::png::PngEncoder::new(&mut bytes);
        encoder.set_icc_profile(vec![0; 32 * 1024 * 1024]).unwrap();
        let picture = DynamicImage::from(RgbImage::new(8, 8));
        picture.write_with_encoder(encoder).unwrap();
        assert!(STANDARD.encode(&bytes).len() < HEADS[1], "{}", bytes.len());
        let packed = |memory| {
            let decoder = reader(&bytes, memory).unwrap().into_decoder();
            decoder.ok()?.icc_profile().ok()?.map(|it| it.len())
        };
        assert_eq!(packed(MEMORY), Some(32 * 1024 * 1024));
        assert_eq!(packed(MEMORY_OF_HEAD), None);
        // Its size is found, or it is none that can be read.
        assert!(!matches!(width(&STANDARD.encode(&bytes)), Ok(other) if other != 8));
    }

    fn plain(width: u32, height: u32) -> String {
        written_as_png(&DynamicImage::from(RgbImage::new(width, height)))
    }

    fn read(picture: &Picture) -> DynamicImage {
        let bytes = STANDARD.decode(&picture.data).unwrap();
        let format = ImageFormat::from_mime_type(&picture.mime).unwrap();
        image::load_from_memory_with_format(&bytes, format).unwrap()
    }

    #[test]
    fn base64_is_told_from_anything_else() {
        for text in ["", "AAAA", "+/9z", "AAA=", "AA=="] {
            assert!(is_base64(text) && STANDARD.decode(text).is_ok(), "{text}");
        }
        for text in [
            "A", "AAAAA", "A===", "====", "AA=A", "AA\"A", "AAA ", "AA-_", "AAAé", "AéAAA",
            "AA==AAAA", "AAAAAB==", "AAB=",
        ] {
            assert!(!is_base64(text) && STANDARD.decode(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_base64_anywhere_is_no_picture() {
        let mut data = noise(300, 200);
        let at = data.len() - 100;
        data.replace_range(at..=at, "\"");
        assert!(make(data, &Wanted::default()).is_err());
    }

    #[test]
    fn a_picture_whose_size_stands_far_behind_its_beginning_stays_as_it_is() {
        let mut bytes = Vec::new();
        let mut encoder = image::codecs::png::PngEncoder::new(&mut bytes);
        // Nothing that could be packed.
        let profile = STANDARD.decode(noise(300, 200)).unwrap();
        encoder.set_icc_profile(profile).unwrap();
        let picture = DynamicImage::from(RgbImage::new(8, 8));
        picture.write_with_encoder(encoder).unwrap();
        let data = STANDARD.encode(&bytes);
        assert!((HEADS[0]..HEADS[1]).contains(&data.len()));
        assert!(about_beginning(&data).is_some());
        assert_eq!(make(data.clone(), &Wanted::default()).unwrap().data, data);
    }

    #[test]
    fn a_small_picture_stays_as_it_is() {
        let data = plain(800, 600);
        let made = make(data.clone(), &Wanted::default()).unwrap();
        assert_eq!(made.data, data);
        assert_eq!((made.width, made.height), (800, 600));
    }

    #[test]
    fn a_large_picture_gets_the_usual_edge() {
        let made = make(plain(3840, 2160), &Wanted::default()).unwrap();
        assert_eq!((made.width, made.height), (1568, 882));
        assert_eq!(made.whole, (3840, 2160));
        assert_eq!(read(&made).dimensions(), (1568, 882));
    }

    #[test]
    fn what_takes_too_many_bytes_is_written_with_less_quality_and_then_smaller() {
        let wanted = Wanted {
            most: 200_000,
            ..Wanted::default()
        };
        let made = make(noise(1000, 700), &wanted).unwrap();
        assert!(made.data.len() <= 200_000);
        assert_eq!(made.mime, "image/jpeg");
        assert_eq!(read(&made).dimensions(), (made.width, made.height));
        assert!(made.width <= 500, "{}", made.width);
    }

    #[test]
    fn format_width_and_region_are_those_that_were_asked_for() {
        for (format, mime) in [
            (Format::Png, "image/png"),
            (Format::Jpeg, "image/jpeg"),
            (Format::Webp, "image/webp"),
        ] {
            let wanted = Wanted {
                region: Some(Region {
                    x: 900,
                    y: 100,
                    width: 400,
                    height: 200,
                }),
                width: Some(50),
                format: Some(format),
                ..Wanted::default()
            };
            let made = make(plain(1000, 700), &wanted).unwrap();
            assert_eq!(made.mime, mime);
            // What is outside of the picture is left out.
            assert_eq!((made.width, made.height), (50, 100));
            assert_eq!(read(&made).dimensions(), (50, 100));
        }
    }

    #[test]
    fn a_width_may_be_more_than_the_usual_edge() {
        let wanted = Wanted {
            width: Some(3000),
            ..Wanted::default()
        };
        assert_eq!(make(plain(2800, 100), &wanted).unwrap().width, 2800);
    }

    #[test]
    fn a_tall_picture_is_bounded_in_its_height_too() {
        let wanted = Wanted {
            width: Some(1000),
            ..Wanted::default()
        };
        let made = make(plain(500, 15_680), &wanted).unwrap();
        assert_eq!((made.width, made.height), (50, EDGE));
    }

    #[test]
    fn a_picture_in_which_places_are_read_keeps_its_size_or_is_refused() {
        let wanted = |most| Wanted {
            most,
            exact: true,
            ..Wanted::default()
        };
        let made = make(noise(1000, 700), &wanted(500_000)).unwrap();
        assert_eq!((made.width, made.height), (1000, 700));
        assert!(made.data.len() <= 500_000, "{}", made.data.len());
        assert!(make(noise(1000, 700), &wanted(50_000)).is_err());
    }

    #[tokio::test]
    async fn one_users_pictures_leave_a_place_to_others() {
        let (alice, bob) = (Uid::random(), Uid::random());
        let held = OF_USERS.get_with_by_ref(&alice, || PICTURES.semaphore_of_one());
        let _held = held.acquire_owned().await;
        let wanted = Wanted::default();
        let fitted = |user| {
            let fitted = fit(user, plain(10, 10), wanted);
            tokio::time::timeout(Duration::from_millis(200), fitted)
        };
        assert!(fitted(&alice).await.is_err());
        assert!(fitted(&bob).await.is_ok());
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        let huge = {
            // The head of a PNG of 100,000 × 100,000 pixels.
            let mut bytes = STANDARD.decode(plain(1, 1)).unwrap();
            bytes[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
            STANDARD.encode(bytes)
        };
        let cut = {
            let mut data = plain(300, 300);
            data.truncate(data.len() / 8 * 4);
            data
        };
        let small = Wanted {
            edge: 10,
            ..Wanted::default()
        };
        let many = plain(6001, 4000);
        for data in ["", "?", "AAAA", &huge, &cut, &many] {
            assert!(make(data.to_owned(), &small).is_err(), "{}", data.len());
        }
        let outside = Wanted {
            region: Some(Region {
                x: 10,
                y: 0,
                width: 1,
                height: 1,
            }),
            ..Wanted::default()
        };
        assert!(make(plain(10, 10), &outside).is_err());
    }
}
